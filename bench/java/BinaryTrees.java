/** binary-trees, as PROGRAMS.md specifies it. */
final class BinaryTrees {
    private record Node(Node left, Node right) {}

    private BinaryTrees() {}

    private static Node makeTree(int depth) {
        if (depth == 0) {
            return new Node(null, null);
        }
        return new Node(makeTree(depth - 1), makeTree(depth - 1));
    }

    private static long count(Node node) {
        return node == null ? 0 : 1 + count(node.left) + count(node.right);
    }

    static String run(int depth) {
        StringBuilder checksum = new StringBuilder();
        checksum.append("binary-trees ").append(depth);
        checksum.append(" stretch=").append(count(makeTree(depth + 1)));
        Node longLived = makeTree(depth);
        for (int d = 4; d <= depth; d += 2) {
            long trees = 1L << (depth - d + 4);
            long check = 0;
            for (long n = 0; n < trees; n++) {
                check += count(makeTree(d));
            }
            checksum.append(' ').append(d).append('=').append(trees).append(':').append(check);
        }
        return checksum.append(" long=").append(count(longLived)).toString();
    }
}
