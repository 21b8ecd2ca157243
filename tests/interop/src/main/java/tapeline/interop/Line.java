package tapeline.interop;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;

/** One event: one JSON object on one line of standard output. */
final class Line {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private final ObjectNode object = MAPPER.createObjectNode();

    private Line(String event) {
        object.put("event", event);
    }

    static Line event(String event) {
        return new Line(event);
    }

    Line with(String name, String value) {
        object.put(name, value);
        return this;
    }

    Line with(String name, long value) {
        object.put(name, value);
        return this;
    }

    Line with(String name, boolean value) {
        object.put(name, value);
        return this;
    }

    Line with(String name, Map<String, ?> values) {
        object.set(name, MAPPER.valueToTree(values));
        return this;
    }

    /** In one piece, so that threads do not mix. */
    void print() {
        synchronized (System.out) {
            System.out.println(object);
            System.out.flush();
        }
    }
}
