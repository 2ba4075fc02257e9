package onceproof.streams;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
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
            Asked asked = Asked.parse(owner.readLine());
            try (Admin admin = Admin.create(asked.config)) {
                set(admin, asked.client, asked.rate);
            }
            events.emit("quota", Events.fields("client_id", asked.client, RATE, asked.rate));
        } catch (IllegalArgumentException e) {
            events.error(e.getMessage());
            Exit.FAILED.now();
        } catch (ExecutionException | InterruptedException | IOException | RuntimeException e) {
            events.error(e.getClass().getSimpleName() + ": " + e.getMessage());
            Exit.FAILED.now();
        }
        Exit.CLOSED.now();
    }

    /** What was asked for. */
    static final class Asked {

        private static final ObjectMapper JSON = new ObjectMapper();

        final Map<String, Object> config;
        final String client;
        final Double rate;

        private Asked(Map<String, Object> config, String client, Double rate) {
            this.config = config;
            this.client = client;
            this.rate = rate;
        }

        /** Parse. No message quotes the line: it may carry credentials. */
        static Asked parse(String line) {
            try {
                Map<String, Object> parts = JSON.readValue(line == null ? "" : line, OBJECT);
                Map<String, Object> config = JSON.convertValue(parts.get("config"), OBJECT);
                Object client = parts.get("client_id");
                Object rate = parts.get(RATE);
                if (config != null && client instanceof String && (rate == null || rate instanceof Number)) {
                    return new Asked(config, (String) client, rate == null ? null : ((Number) rate).doubleValue());
                }
            } catch (JsonProcessingException | IllegalArgumentException e) {
                // said below
            }
            throw new IllegalArgumentException("The first line must be a JSON object with config (an object), client_id"
                    + " (a text) and " + RATE + " (a number or null).");
        }
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
