package onceproof.streams;

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
 * Sets or removes the {@code producer_byte_rate} of a client id and ends when the brokers report it.
 *
 * <p>Asked for ({@link AdminProgram}): {@code client_id}, and {@code producer_byte_rate} in bytes per second, null to
 * remove it. It reports an event {@code quota}.
 */
public final class ProducerQuota {

    private static final String CLIENT = "client_id";
    static final String RATE = "producer_byte_rate";

    private ProducerQuota() {}

    public static void main(String[] arguments) {
        AdminProgram.run(ProducerQuota::set);
    }

    private static void set(Admin admin, Map<String, Object> asked, Events events)
            throws ExecutionException, InterruptedException {
        if (!(asked.get(CLIENT) instanceof String) || !(asked.get(RATE) == null || asked.get(RATE) instanceof Number)) {
            throw new IllegalArgumentException(CLIENT + " must be a text, and " + RATE + " a number or null.");
        }
        String client = (String) asked.get(CLIENT);
        Double rate = asked.get(RATE) == null ? null : ((Number) asked.get(RATE)).doubleValue();
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, client));
        ClientQuotaAlteration.Op op = new ClientQuotaAlteration.Op(RATE, rate);
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(op)))).all().get();
        AdminProgram.await("quota", () -> Objects.equals(told(admin, entity, client), rate));
        events.emit("quota", Events.fields(CLIENT, client, RATE, rate));
    }

    private static Double told(Admin admin, ClientQuotaEntity entity, String client)
            throws ExecutionException, InterruptedException {
        ClientQuotaFilter filter = ClientQuotaFilter.containsOnly(
                List.of(ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.CLIENT_ID, client)));
        return admin.describeClientQuotas(filter).entities().get().getOrDefault(entity, Map.of()).get(RATE);
    }
}
