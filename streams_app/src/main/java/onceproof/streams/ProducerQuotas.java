package onceproof.streams;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.errors.ClusterAuthorizationException;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;

/**
 * Reports which client ids have a {@code producer_byte_rate} of their own, for any user.
 *
 * <p>Nothing is asked for ({@link AdminProgram}). It reports an event {@code quotas} with {@code client_ids}; they
 * are none for a client that may not see quotas, since it may not have set any either.
 */
public final class ProducerQuotas {

    private ProducerQuotas() {}

    public static void main(String[] arguments) {
        AdminProgram.run(ProducerQuotas::tell);
    }

    private static void tell(Admin admin, Map<String, Object> asked, Events events)
            throws ExecutionException, InterruptedException {
        events.emit("quotas", Events.fields("client_ids", clients(admin)));
    }

    private static Collection<String> clients(Admin admin) throws ExecutionException, InterruptedException {
        ClientQuotaFilter filter = ClientQuotaFilter.containsOnly(
                List.of(ClientQuotaFilterComponent.ofEntityType(ClientQuotaEntity.CLIENT_ID)));
        Set<String> clients = new TreeSet<>();
        try {
            admin.describeClientQuotas(filter).entities().get().forEach((entity, quotas) -> {
                String client = entity.entries().get(ClientQuotaEntity.CLIENT_ID); // null: of all that have none
                if (client != null && quotas.containsKey(ProducerQuota.RATE)) {
                    clients.add(client);
                }
            });
        } catch (ExecutionException e) {
            if (!(e.getCause() instanceof ClusterAuthorizationException)) {
                throw e;
            }
        }
        return clients;
    }
}
