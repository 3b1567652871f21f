import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.Locale;

/** The command line and the line of JSON at the end; see PROGRAMS.md for the contract. */
public final class Contender {
    private static final StringBuilder REPORT = new StringBuilder();

    private Contender() {}

    public static void main(String[] args) {
        int depth = 16;
        long objects = 10_000_000;
        for (int i = 1; i < args.length; i += 2) {
            switch (args[i]) {
                case "--depth" -> depth = Integer.parseInt(args[i + 1]);
                case "--objects" -> objects = Long.parseLong(args[i + 1]);
                default -> throw new IllegalArgumentException("unknown flag " + args[i]);
            }
        }
        String checksum =
                switch (args[0]) {
                    case "gcbench" -> GcBench.run();
                    case "binary-trees" -> BinaryTrees.run(depth);
                    case "large-live-heap" -> LargeLiveHeap.run();
                    case "long-list" -> LongList.run(objects);
                    default -> throw new IllegalArgumentException("unknown program " + args[0]);
                };
        System.out.println("{\"checksum\": \"" + checksum + "\"" + REPORT + "}");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    /** Adds a number to the report. */
    static void report(String name, double value) {
        REPORT.append(String.format(Locale.ROOT, ", \"%s\": %.3f", name, value));
    }

    /** Latency of the batches, by the thread's CPU time and by the wall clock. */
    static final class Latencies {
        private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
        private final long[] cpu;
        private final long[] wall;
        private int recorded;
        private long cpuBegin;
        private long wallBegin;

        Latencies(int batches) {
            cpu = new long[batches];
            wall = new long[batches];
        }

        void begin() {
            wallBegin = System.nanoTime();
            cpuBegin = THREADS.getCurrentThreadCpuTime();
        }

        void end() {
            cpu[recorded] = THREADS.getCurrentThreadCpuTime() - cpuBegin;
            wall[recorded] = System.nanoTime() - wallBegin;
            recorded++;
        }

        void report() {
            report(cpu, "max_latency_us", "p999_latency_us");
            report(wall, "max_latency_wall_us", "p999_latency_wall_us");
        }

        private void report(long[] times, String max, String p999) {
            Arrays.sort(times);
            Contender.report(max, times[times.length - 1] / 1e3);
            Contender.report(p999, times[(int) (times.length * 999L / 1000)] / 1e3);
        }
    }
}
