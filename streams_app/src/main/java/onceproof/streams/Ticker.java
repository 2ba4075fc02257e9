package onceproof.streams;

import java.util.concurrent.TimeUnit;

/** Tells when this process got no CPU time for two seconds or more: what it did then says nothing about Kafka. */
final class Ticker {

    private static final long TICK_MILLIS = 100;
    private static final long MISSED_MILLIS = 2_000; // the same as the driver's, src/onceproof/lab/ticker.py

    private Ticker() {}

    static void start(Events events) {
        Thread thread = new Thread(() -> run(events), "ticker");
        thread.setDaemon(true);
        thread.start();
    }

    private static void run(Events events) {
        try {
            for (long last = System.nanoTime(); ; ) {
                TimeUnit.MILLISECONDS.sleep(TICK_MILLIS);
                long now = System.nanoTime();
                long millis = TimeUnit.NANOSECONDS.toMillis(now - last);
                if (millis - TICK_MILLIS >= MISSED_MILLIS) {
                    events.emit("stall", Events.fields("ms", millis));
                }
                last = now;
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
