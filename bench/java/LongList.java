/** long-list, as PROGRAMS.md specifies it; and the list cells of large-live-heap. */
final class LongList {
    private static final long AFTER = 1_000_000;

    private LongList() {}

    static final class Cell {
        final long number;
        final Cell next;

        Cell(long number, Cell next) {
            this.number = number;
            this.next = next;
        }
    }

    /** The last single cell; a field, so that escape analysis cannot remove the allocation. */
    private static Cell single;

    static long sum(Cell list) {
        long sum = 0;
        for (Cell cell = list; cell != null; cell = cell.next) {
            sum += cell.number;
        }
        return sum;
    }

    static String run(long objects) {
        long sum = counted(objects);
        System.gc();
        for (long k = 0; k < AFTER; k++) {
            single = new Cell(k, null);
            sum += single.number;
        }
        return "long-list " + objects + " sum=" + sum;
    }

    private static long counted(long objects) {
        Cell list = null;
        for (long k = 0; k < objects; k++) {
            list = new Cell(k, list);
        }
        return sum(list);
    }
}
