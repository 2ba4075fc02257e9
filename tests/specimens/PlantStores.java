import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.rocksdb.ColumnFamilyDescriptor;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.ColumnFamilyOptions;
import org.rocksdb.DBOptions;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;

/**
 * Alters RocksDB stores that no process has open, or makes new ones, as lines of standard input say: {@code store
 * <directory>}, then {@code put <key> <value>} and {@code delete <key>} for it. Keys and values are four bytes.
 */
public final class PlantStores {

    private PlantStores() {}

    public static void main(String[] arguments) throws IOException, RocksDBException {
        RocksDB store = null;
        List<ColumnFamilyHandle> families = new ArrayList<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("store")) {
                close(store, families);
                store = open(line.substring(words[0].length() + 1), families);
            } else if (words[0].equals("put")) {
                store.put(bytes(words[1]), bytes(words[2]));
            } else {
                store.delete(bytes(words[1]));
            }
        }
        close(store, families);
    }

    private static RocksDB open(String directory, List<ColumnFamilyHandle> families) throws RocksDBException {
        List<ColumnFamilyDescriptor> descriptors = new ArrayList<>();
        try (Options any = new Options()) {
            for (byte[] name : RocksDB.listColumnFamilies(any, directory)) {
                descriptors.add(new ColumnFamilyDescriptor(name, new ColumnFamilyOptions()));
            }
        }
        if (descriptors.isEmpty()) {
            descriptors.add(new ColumnFamilyDescriptor(RocksDB.DEFAULT_COLUMN_FAMILY, new ColumnFamilyOptions()));
        }
        return RocksDB.open(new DBOptions().setCreateIfMissing(true), directory, descriptors, families);
    }

    private static void close(RocksDB store, List<ColumnFamilyHandle> families) {
        families.forEach(ColumnFamilyHandle::close);
        families.clear();
        if (store != null) {
            store.close();
        }
    }

    private static byte[] bytes(String number) {
        return ByteBuffer.allocate(Integer.BYTES).putInt(Integer.parseInt(number)).array();
    }
}
