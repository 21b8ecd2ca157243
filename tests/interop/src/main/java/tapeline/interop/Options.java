package tapeline.interop;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** `--name value` pairs and the words between them. Unknown names are the caller's mistake: exit code 2. */
final class Options {
    private final Map<String, String> values = new HashMap<>();
    private final List<String> words = new ArrayList<>();
    private final List<String> names = new ArrayList<>();

    Options(String[] arguments, String usage, Set<String> known) {
        for (int index = 0; index < arguments.length; index++) {
            String argument = arguments[index];
            if (!argument.startsWith("--")) {
                words.add(argument);
                continue;
            }
            String name = argument.substring(2);
            if (!known.contains(name) || index + 1 == arguments.length) {
                System.err.println((known.contains(name) ? "no value for " : "unknown option ") + argument);
                System.err.println("usage: " + usage);
                System.exit(2);
            }
            values.put(name, arguments[++index]);
        }
    }

    List<String> words() {
        return words;
    }

    boolean has(String name) {
        return values.containsKey(name);
    }

    String text(String name, String otherwise) {
        return values.getOrDefault(name, otherwise);
    }

    /** Must be there. */
    String text(String name) {
        if (!values.containsKey(name)) {
            System.err.println("--" + name + " is needed");
            System.exit(2);
        }
        return values.get(name);
    }

    int number(String name, int otherwise) {
        return values.containsKey(name) ? Integer.parseInt(values.get(name)) : otherwise;
    }

    /** An item to ask for: of a server that has items of its own, that of this number in the file `--names`. */
    String item(int number, String otherwise) {
        if (!has("names")) {
            return otherwise;
        }
        if (names.isEmpty()) {
            try {
                names.addAll(Files.readAllLines(Path.of(text("names"))));
            } catch (IOException failure) {
                throw new UncheckedIOException(failure);
            }
        }
        return names.get(number % names.size());
    }

    Transport transport() {
        return Transport.named(text("transport", "tcp"));
    }
}
