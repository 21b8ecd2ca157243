package tapeline.interop;

import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;

/**
 * Makes a trust store of a list of certificates: {@code SystemTrust PEM JKS}.
 *
 * <p>Run from its source, before Maven. Java has a list of its own, and authorities that only the system's has, such as
 * a company's whose proxy stands before Maven Central, are missing there. A store without a password reads without one.
 */
final class SystemTrust {
    private SystemTrust() {}

    public static void main(String[] arguments) throws Exception {
        KeyStore store = KeyStore.getInstance("JKS");
        store.load(null, null);
        try (var list = Files.newInputStream(Path.of(arguments[0]))) {
            int number = 0;
            for (Certificate certificate : CertificateFactory.getInstance("X.509").generateCertificates(list)) {
                store.setCertificateEntry("authority " + number++, certificate);
            }
        }
        try (var file = Files.newOutputStream(Path.of(arguments[1]))) {
            store.store(file, new char[0]);
        }
    }
}
