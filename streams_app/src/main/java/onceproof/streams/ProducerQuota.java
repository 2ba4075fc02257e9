package onceproof.streams;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;

/**
 * Sets or removes the {@code producer_byte_rate} of a client id and ends when the brokers tell of it.
 *
 * <p>Stdin: one JSON object with {@code config} (of an Admin client), {@code client_id} and {@code producer_byte_rate}
 * in bytes a second, null to remove it. Stdout: an event {@code quota}, or {@code error} with exit code 1.
 */
public final class ProducerQuota {

    private static final String RATE = "producer_byte_rate";
    private static final long PATIENCE_MILLIS = 20_000;
    private static final TypeReference<Map<String, Object>> OBJECT = new TypeReference<>() {};

    private ProducerQuota() {}

    public static void main(String[] arguments) {
        Events events = new Events(new FileOutputStream(FileDescriptor.out));
        System.setOut(System.err);
        BufferedReader owner = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try {
            ObjectMapper json = new ObjectMapper();
            Map<String, Object> asked = json.readValue(owner.readLine(), OBJECT);
            String client = String.valueOf(asked.get("client_id"));
            Number rate = (Number) asked.get(RATE);
            try (Admin admin = Admin.create(json.convertValue(asked.get("config"), OBJECT))) {
                set(admin, client, rate == null ? null : rate.doubleValue());
            }
            events.emit("quota", Events.fields("client_id", client, RATE, rate));
        } catch (ExecutionException | InterruptedException | java.io.IOException | RuntimeException e) {
            events.error(e.getClass().getSimpleName() + ": " + e.getMessage());
            Exit.FAILED.now();
        }
        Exit.CLOSED.now();
    }

    private static void set(Admin admin, String client, Double rate) throws ExecutionException, InterruptedException {
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, client));
        ClientQuotaAlteration.Op op = new ClientQuotaAlteration.Op(RATE, rate);
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(op)))).all().get();
        long deadline = System.currentTimeMillis() + PATIENCE_MILLIS;
        while (!Objects.equals(told(admin, entity, client), rate)) {
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException("the brokers do not tell of the quota that they accepted");
            }
            Thread.sleep(20);
        }
    }

    private static Double told(Admin admin, ClientQuotaEntity entity, String client)
            throws ExecutionException, InterruptedException {
        ClientQuotaFilter filter = ClientQuotaFilter.containsOnly(
                List.of(ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.CLIENT_ID, client)));
        return admin.describeClientQuotas(filter).entities().get().getOrDefault(entity, Map.of()).get(RATE);
    }
}
