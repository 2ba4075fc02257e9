import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Stream;

/** An application that looks for what is none of its business. A line for each thing: "prying NAME: found" or "nothing". */
public final class Prying {

    private static final Path HOME = Path.of("/var/lib/onceproof");

    private Prying() {}

    /** Look, without Kafka. */
    public static void main(String[] arguments) {
        look("secrets", () -> Files.isReadable(Path.of("/run/secrets/fernet_key")));
        look("environment", () -> System.getenv().keySet().stream().anyMatch(name -> name.startsWith("AIRFLOW")));
        look("other environments", Prying::readsEnvironments);
        for (String server : List.of("postgres:5432", "api-server:8080")) {
            look(server, () -> connects(server));
        }
        look("network", () -> NetworkInterface.networkInterfaces().anyMatch(Prying::isOutside));
        for (String folder : List.of("runs-of-others", "airflow")) {
            look(folder, () -> reads(HOME.resolve(folder.replace("-of-others", ""))));
        }
        for (String folder : List.of("artifacts", "applications")) {
            look("write " + folder, () -> writes(HOME.resolve(folder)));
        }
    }

    private static void look(String name, Callable<Boolean> found) {
        boolean is;
        try {
            is = found.call();
        } catch (Exception refused) {
            is = false;
        }
        System.err.println("prying " + name + ": " + (is ? "found" : "nothing"));
    }

    private static boolean readsEnvironments() throws IOException {
        try (Stream<Path> processes = Files.list(Path.of("/proc"))) {
            return processes.map(process -> process.resolve("environ")).filter(Files::isReadable).anyMatch(file -> {
                try {
                    return Files.readString(file, java.nio.charset.StandardCharsets.ISO_8859_1).contains("AIRFLOW");
                } catch (IOException gone) {
                    return false;
                }
            });
        }
    }

    private static boolean connects(String server) throws IOException {
        String[] parts = server.split(":");
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(parts[0], Integer.parseInt(parts[1])), 2_000);
            return true;
        }
    }

    private static boolean isOutside(NetworkInterface one) {
        try {
            return one.isUp() && !one.isLoopback();
        } catch (IOException unknown) {
            return true;
        }
    }

    /** Another run than its own. */
    private static boolean reads(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.anyMatch(file -> !Path.of("").toAbsolutePath().startsWith(file) && isOld(file));
        }
    }

    private static boolean isOld(Path file) {
        return file.getFileName().toString().startsWith("20261121") || !file.getParent().endsWith("runs");
    }

    private static boolean writes(Path folder) throws IOException {
        return Files.deleteIfExists(Files.createTempFile(folder, "prying", ""));
    }
}
