import java.lang.management.ManagementFactory;

/** large-live-heap, as PROGRAMS.md specifies it. */
final class LargeLiveHeap {
    private static final int BUCKETS = 1 << 20;
    private static final long ENTRIES = 5_000_000;
    private static final int BATCH = 256;
    private static final int BATCHES = 40_000;
    private static final int LIST_LENGTH = 16;
    private static final int CHECKED_STRIDE = 16;
    private static final long FNV_PRIME = 0x100000001B3L;

    private static final class Leaf {
        long number;

        Leaf(long number) {
            this.number = number;
        }
    }

    private static final class Entry {
        final long key;
        Leaf value;
        final Entry next;

        Entry(long key, Leaf value, Entry next) {
            this.key = key;
            this.value = value;
            this.next = next;
        }
    }

    private final Entry[] table = new Entry[BUCKETS];
    private long state = 0x4C6976656F616B21L;
    private long accumulated = 0;

    private static long mix(long z) {
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }

    private long random() {
        state += 0x9E3779B97F4A7C15L;
        return mix(state);
    }

    private long pick() {
        return ((random() >>> 32) * ENTRIES) >>> 32;
    }

    private static int bucket(long key) {
        return (int) (key >>> 44);
    }

    private void insert(long n) {
        long key = mix(n);
        Leaf leaf = new Leaf(n);
        table[bucket(key)] = new Entry(key, leaf, table[bucket(key)]);
    }

    private Entry find(long n) {
        long key = mix(n);
        Entry entry = table[bucket(key)];
        while (entry.key != key) {
            entry = entry.next;
        }
        return entry;
    }

    private void operate(long op) {
        switch ((int) (random() >>> 62)) {
            case 0 -> {
                Leaf leaf = find(pick()).value;
                leaf.number += op;
                accumulated += leaf.number;
            }
            case 1 -> {
                Entry a = find(pick());
                Entry b = find(pick());
                Leaf value = a.value;
                a.value = b.value;
                b.value = value;
            }
            case 2 -> {
                Entry entry = find(pick());
                entry.value = new Leaf(op);
            }
            default -> {
                long start = random();
                LongList.Cell head = null;
                for (int k = 0; k < LIST_LENGTH; k++) {
                    head = new LongList.Cell(start + k, head);
                }
                accumulated += LongList.sum(head);
            }
        }
    }

    private static long fold(long hash, long word) {
        return (hash ^ word) * FNV_PRIME;
    }

    private String checksum() {
        long hash = 0;
        for (int b = 0; b < BUCKETS; b += CHECKED_STRIDE) {
            for (Entry entry = table[b]; entry != null; entry = entry.next) {
                hash = fold(fold(hash, entry.key), entry.value.number);
            }
        }
        return String.format("large-live-heap %016x", fold(hash, accumulated));
    }

    private void batch(long first) {
        for (long op = first; op < first + BATCH; op++) {
            operate(op);
        }
    }

    static String run() {
        LargeLiveHeap program = new LargeLiveHeap();
        for (long n = 0; n < ENTRIES; n++) {
            program.insert(n);
        }
        var system =
                (com.sun.management.OperatingSystemMXBean)
                        ManagementFactory.getOperatingSystemMXBean();
        Contender.report("setup_cpu_ms", system.getProcessCpuTime() / 1e6);

        Contender.Latencies latencies = new Contender.Latencies(BATCHES);
        for (long batch = 0; batch < BATCHES; batch++) {
            latencies.begin();
            program.batch(batch * BATCH);
            latencies.end();
        }
        latencies.report();
        return program.checksum();
    }
}
