package onceproof.streams;

/** How the process ends. Always at once: whatever had to be said has been said, and no thread may hold up the end. */
enum Exit {
    CLOSED(0),
    FAILED(1),
    ORPHANED(3);

    private final int code;

    Exit(int code) {
        this.code = code;
    }

    void now() {
        Runtime.getRuntime().halt(code);
    }
}
