package tapeline.interop;

import com.refinitiv.ema.access.EmaFactory;
import com.refinitiv.ema.access.FieldEntry;
import com.refinitiv.ema.access.FieldList;
import com.refinitiv.ema.access.Map;
import com.refinitiv.ema.access.MapEntry;
import com.refinitiv.ema.access.OmmReal.MagnitudeType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Set;

/**
 * What our providers say of an item: a price that rises by a cent with every update, or a book of orders.
 *
 * <p>The fields are those of Tapeline's own dictionary (crates/omm/dictionary).
 */
final class Published {
    static final int BID = 22;
    static final int ASK = 25;
    static final int ORDER_ID = 3426;
    /** An item whose image has a megabyte: it has so many orders. */
    static final String BIG = "BIG";
    /** Posts to this item are refused. */
    static final String NAK = "NAK";
    /** An item that nobody has. */
    static final String UNKNOWN = "UNKNOWN";

    private static final int ORDERS_OF_BIG = 18_000;
    private static final int ADD = 2;
    private static final int UPDATE = 1;
    private static final int DELETE = 3;

    private Published() {}

    /** Every field of the dictionary's first part, or those of a view. */
    static FieldList image(int turn, Set<Integer> view) {
        FieldList list = quote(turn, view);
        add(list, view, field().real(6, 4000 + turn, MagnitudeType.EXPONENT_NEG_2));
        add(list, view, field().enumValue(15, 840));
        add(list, view, field().real(32, 1_000_000L + turn, MagnitudeType.EXPONENT_0));
        add(list, view, field().rmtes(4451, text("TAPE")));
        add(list, view, field().enumValue(6516, 1));
        add(list, view, field().enumValue(6614, 1));
        add(list, view, field().time(14265, 14, 30, 15, 123, 456, 789));
        add(list, view, field().codeTime(14266));
        return list;
    }

    static FieldList quote(int turn, Set<Integer> view) {
        FieldList list = EmaFactory.createFieldList();
        add(list, view, field().real(BID, 3990 + turn, MagnitudeType.EXPONENT_NEG_2));
        add(list, view, field().real(ASK, 4000 + turn, MagnitudeType.EXPONENT_NEG_2));
        add(list, view, field().real(30, 9 + turn, MagnitudeType.EXPONENT_0));
        add(list, view, field().real(31, 19 + turn, MagnitudeType.EXPONENT_0));
        return list;
    }

    static Map book(boolean big) {
        int orders = big ? ORDERS_OF_BIG : 3;
        Map map = header().totalCountHint(orders);
        for (int number = 0; number < orders; number++) {
            map.add(order(number, ADD));
        }
        return map;
    }

    /** The next change of a book: an order more, one changed, one less. */
    static Map change(int turn) {
        Map map = header();
        switch (turn % 3) {
            case 1 -> map.add(order(100_000 + turn, ADD));
            case 2 -> map.add(order(1, UPDATE));
            default -> map.add(EmaFactory.createMapEntry()
                    // With a summary of fields, EMA wants fields in every entry.
                    .keyBuffer(text("ORDER" + (100_000 + turn - 2)), DELETE, EmaFactory.createFieldList()));
        }
        return map;
    }

    private static Map header() {
        FieldList summary = EmaFactory.createFieldList();
        summary.add(field().enumValue(15, 840));
        summary.add(field().enumValue(53, 2));
        return EmaFactory.createMap().keyFieldId(ORDER_ID).summaryData(summary);
    }

    private static MapEntry order(int number, int action) {
        FieldList list = EmaFactory.createFieldList();
        list.add(field().real(3427, 4000 + number % 100, MagnitudeType.EXPONENT_NEG_2));
        list.add(field().enumValue(3428, 1 + number % 2));
        list.add(field().real(3429, 100 + number % 7, MagnitudeType.EXPONENT_0));
        list.add(field().rmtes(3435, text("MAKER")));
        list.add(field().time(14275, 9, 30, 0, 0, 0, number % 1000));
        list.add(field().time(14276, 10, 0, 0, 1, 2, number % 1000));
        return EmaFactory.createMapEntry().keyBuffer(text("ORDER" + number), action, list);
    }

    private static void add(FieldList list, Set<Integer> view, FieldEntry entry) {
        if (view.isEmpty() || view.contains(entry.fieldId())) {
            list.add(entry);
        }
    }

    /** Its id comes with its value. */
    private static FieldEntry field() {
        return EmaFactory.createFieldEntry();
    }

    private static ByteBuffer text(String text) {
        return ByteBuffer.wrap(text.getBytes(StandardCharsets.US_ASCII));
    }
}
