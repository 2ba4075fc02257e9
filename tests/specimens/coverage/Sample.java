package sample;

import java.util.function.LongUnaryOperator;

public final class Sample {

    private static final long ADDED = 5_000_000_000L;

    public static void main(String[] arguments) {
        LongUnaryOperator added = number -> {
            return number + ADDED;
        };
        Nested nested = new Nested();
        System.out.println(added.applyAsLong(nested.sign(arguments.length)));
        System.out.println(arguments.length > 1 ? "more" : "one");
    }

    private static final class Nested {
        int sign(int number) {
            if (number == 0) {
                return 0;
            }
            return 1;
        }
    }
}
