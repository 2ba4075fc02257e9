package onceproof.agent;

import java.util.Set;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.streams.state.HostInfo;

/** Bugs of interactive queries. */
public final class Querying {

    private Querying() {}

    /** In {@code StoreQueryParameters.staleStoresEnabled()}: standbys and stores that are being restored answer anyone. */
    static final class AnyStoreAnswers {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) boolean stale) {
            stale = allowed(stale);
        }
    }

    public static boolean allowed(boolean stale) {
        if (!stale) {
            Fired.now();
        }
        return true;
    }

    /** In {@code LagInfo.currentOffsetPosition()}: no store lags. */
    static final class LagHidden {
        @Advice.OnMethodExit
        static void exit(
                @Advice.Return(readOnly = false) long position, @Advice.FieldValue("endOffsetPosition") long end) {
            position = caughtUp(position, end);
        }
    }

    public static long caughtUp(long position, long end) {
        if (position < end) {
            Fired.now();
        }
        return end;
    }

    /** In {@code Position.copy()}: it is not copied, so it changes behind the answer that has it. */
    static final class PositionShared {
        @Advice.OnMethodExit
        static void exit(
                @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object copy, @Advice.This Object own) {
            Fired.now();
            copy = own;
        }
    }

    /** In {@code KeyQueryMetadata.activeHost()}: a standby, if there is one. */
    static final class StandbyForActive {
        @Advice.OnMethodExit
        static void exit(
                @Advice.Return(readOnly = false) HostInfo active,
                @Advice.FieldValue("standbyHosts") Set<HostInfo> standbys) {
            active = anotherThan(active, standbys);
        }
    }

    public static HostInfo anotherThan(HostInfo active, Set<HostInfo> standbys) {
        if (standbys.isEmpty()) {
            return active;
        }
        Fired.now();
        return standbys.iterator().next();
    }

    /** In {@code StreamsConfig.defaultInteractiveQueryIsolationLevel()}: whatever was configured. */
    static final class IsolationIgnored {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) IsolationLevel isolation) {
            Fired.now();
            isolation = IsolationLevel.READ_UNCOMMITTED;
        }
    }
}
