/** gcbench, as PROGRAMS.md specifies it. */
final class GcBench {
    private static final int STRETCH_DEPTH = 18;
    private static final int LONG_LIVED_DEPTH = 16;
    private static final int ARRAY_LENGTH = 500_000;

    private static final class Node {
        Node left;
        Node right;
        int i;
        int j;

        Node() {}

        Node(Node left, Node right) {
            this.left = left;
            this.right = right;
        }
    }

    private GcBench() {}

    private static long size(int depth) {
        return (1L << (depth + 1)) - 1;
    }

    private static Node makeTree(int depth) {
        if (depth <= 0) {
            return new Node();
        }
        return new Node(makeTree(depth - 1), makeTree(depth - 1));
    }

    private static void populate(int depth, Node node) {
        if (depth <= 0) {
            return;
        }
        node.left = new Node();
        node.right = new Node();
        populate(depth - 1, node.left);
        populate(depth - 1, node.right);
    }

    private static long spine(Node node) {
        long length = 0;
        for (; node != null; node = node.left) {
            length++;
        }
        return length;
    }

    private static long count(Node node) {
        return node == null ? 0 : 1 + count(node.left) + count(node.right);
    }

    static String run() {
        long trees = 0;
        long depths = spine(makeTree(STRETCH_DEPTH));

        Node longLived = new Node();
        populate(LONG_LIVED_DEPTH, longLived);
        double[] array = new double[ARRAY_LENGTH];
        for (int i = 0; i < ARRAY_LENGTH / 2; i++) {
            array[i] = 1.0 / i;
        }

        for (int depth = 4; depth <= 16; depth += 2) {
            long iterations = 2 * size(STRETCH_DEPTH) / size(depth);
            for (long n = 0; n < iterations; n++) {
                Node tree = new Node();
                populate(depth, tree);
                depths += spine(tree);
            }
            for (long n = 0; n < iterations; n++) {
                depths += spine(makeTree(depth));
            }
            trees += 2 * iterations;
        }

        double sum = 0;
        for (int i = 1; i < ARRAY_LENGTH / 2; i++) {
            sum += array[i];
        }
        return String.format(
                "gcbench trees=%d spine=%d live=%d array=%016x",
                trees, depths, count(longLived), Double.doubleToRawLongBits(sum));
    }
}
