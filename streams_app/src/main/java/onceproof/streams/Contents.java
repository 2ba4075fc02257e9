package onceproof.streams;

import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.TaskId;

/**
 * What the stores hold when a task meets its first record in this process: restored, and not yet changed.
 *
 * <p>Written only if the setting {@code contents.folder} names a folder: one file per task, one line
 * {@code store,partition,number,key,value} per entry, numbered within its store. A file that exists is complete.
 */
final class Contents {

    private final Path folder;
    private final Progress progress;
    private final Set<TaskId> told = ConcurrentHashMap.newKeySet();

    private Contents(Path folder, Progress progress) {
        this.folder = folder;
        this.progress = progress;
    }

    static Contents of(Settings settings, Progress progress) {
        return new Contents(settings.optional("contents.folder").map(Path::of).orElse(null), progress);
    }

    /** Write the stores of the task, the first time it asks. */
    void tellOnce(TaskId task, List<? extends StateStore> stores) {
        if (folder == null || !told.add(task)) {
            return;
        }
        try {
            Files.createDirectories(folder);
            Path draft = folder.resolve(task + ".draft");
            List<Map<String, Object>> written = new ArrayList<>();
            try (BufferedWriter lines = Files.newBufferedWriter(draft)) {
                for (StateStore store : stores) {
                    written.add(Events.fields("store", store.name(), "entries", write(store, task.partition(), lines)));
                }
            }
            Files.move(draft, folder.resolve(task + ".csv"), StandardCopyOption.REPLACE_EXISTING);
            progress.tell("contents", Events.fields("task", task.toString(), "stores", written));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static long write(StateStore store, int partition, BufferedWriter lines) throws IOException {
        long entries = 0;
        for (KeyValue<Object, Object> entry : Numbers.of(store).entries()) {
            lines.write(store.name() + "," + partition + "," + entries++ + "," + entry.key + "," + entry.value + "\n");
        }
        return entries;
    }
}
