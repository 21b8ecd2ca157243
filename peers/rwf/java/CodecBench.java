import com.refinitiv.eta.codec.Buffer;
import com.refinitiv.eta.codec.Codec;
import com.refinitiv.eta.codec.CodecFactory;
import com.refinitiv.eta.codec.CodecReturnCodes;
import com.refinitiv.eta.codec.DataDictionary;
import com.refinitiv.eta.codec.DataTypes;
import com.refinitiv.eta.codec.Date;
import com.refinitiv.eta.codec.DecodeIterator;
import com.refinitiv.eta.codec.DictionaryEntry;
import com.refinitiv.eta.codec.EncodeIterator;
import com.refinitiv.eta.codec.EnumType;
import com.refinitiv.eta.codec.FieldEntry;
import com.refinitiv.eta.codec.FieldList;
import com.refinitiv.eta.codec.Int;
import com.refinitiv.eta.codec.Msg;
import com.refinitiv.eta.codec.MsgClasses;
import com.refinitiv.eta.codec.Real;
import com.refinitiv.eta.codec.Time;
import com.refinitiv.eta.codec.UInt;
import com.refinitiv.eta.codec.UpdateMsg;
import com.refinitiv.eta.transport.TransportFactory;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.function.ToIntFunction;

/**
 * The codec of LSEG's ETA for Java, told by the lines of its standard input what to measure.
 *
 * <p>Arguments: the field dictionary, the enumerations. Lines: {@code message HEX} is the message from now on, answered with
 * {@code ok}; {@code decode SECONDS} (walk, decode, convert, encode) is answered with million messages a second.
 *
 * <p>All objects are made once and used again, as the library's own performance tools do.
 */
final class CodecBench {
    private static final int BATCH = 10_000;

    private final DataDictionary dictionary = CodecFactory.createDataDictionary();
    private final DecodeIterator decoding = CodecFactory.createDecodeIterator();
    private final EncodeIterator encoding = CodecFactory.createEncodeIterator();
    private final Msg received = CodecFactory.createMsg();
    private final UpdateMsg sent = (UpdateMsg) CodecFactory.createMsg();
    private final FieldList list = CodecFactory.createFieldList();
    private final FieldEntry entry = CodecFactory.createFieldEntry();
    private final Int integer = CodecFactory.createInt();
    private final UInt unsigned = CodecFactory.createUInt();
    private final Real real = CodecFactory.createReal();
    private final Date date = CodecFactory.createDate();
    private final Time time = CodecFactory.createTime();
    private final com.refinitiv.eta.codec.Enum code = CodecFactory.createEnum();
    private final Buffer text = CodecFactory.createBuffer();
    private final Buffer message = CodecFactory.createBuffer();
    private final Buffer out = CodecFactory.createBuffer();
    private final ByteBuffer room = ByteBuffer.allocate(4096);
    private byte[] bytes = {};
    /** What is encoded: id, type and value (null is blank) of each field. */
    private int[] ids = {};
    private int[] types = {};
    private Object[] values = {};
    private double sum;

    public static void main(String[] arguments) throws Exception {
        var bench = new CodecBench();
        var error = TransportFactory.createError();
        check(bench.dictionary.loadFieldDictionary(arguments[0], error), error.text());
        check(bench.dictionary.loadEnumTypeDictionary(arguments[1], error), error.text());
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (var line = lines.readLine(); line != null; line = lines.readLine()) {
            var words = line.split(" ");
            if (words[0].equals("message")) {
                bench.take(HexFormat.of().parseHex(words[1]));
                System.out.println("ok");
            } else {
                System.out.println(bench.rate(words[0], Double.parseDouble(words[1])));
            }
        }
        if (Double.isNaN(bench.sum)) {
            System.out.println("what was read is used");
        }
    }

    private static void check(int code, String what) {
        if (code < CodecReturnCodes.SUCCESS) {
            throw new IllegalStateException(what + ": " + CodecReturnCodes.toString(code));
        }
    }

    /** Takes a message, and sees that it is encoded again to the same bytes. */
    private void take(byte[] received) {
        bytes = received;
        message.data(ByteBuffer.wrap(bytes));
        begin();
        int count = 0;
        ids = new int[4096];
        types = new int[4096];
        values = new Object[4096];
        for (int code = entry.decode(decoding); code != CodecReturnCodes.END_OF_CONTAINER; code = entry.decode(decoding)) {
            check(code, "a field");
            int type = dictionary.entry(entry.fieldId()).rwfType();
            ids[count] = entry.fieldId();
            types[count] = type;
            values[count++] = value(type);
        }
        ids = Arrays.copyOf(ids, count);
        encode();
        var again = new byte[out.length()];
        for (int at = 0; at < again.length; at++) {
            again[at] = room.get(at);
        }
        if (!Arrays.equals(again, bytes)) {
            throw new IllegalStateException("encoded again it is " + HexFormat.of().formatHex(again));
        }
    }

    /** A value of its own; null where it is blank. */
    private Object value(int type) {
        return switch (type) {
            case DataTypes.INT -> read(CodecFactory.createInt(), value -> value.decode(decoding));
            case DataTypes.UINT -> read(CodecFactory.createUInt(), value -> value.decode(decoding));
            case DataTypes.REAL -> read(CodecFactory.createReal(), value -> value.decode(decoding));
            case DataTypes.DATE -> read(CodecFactory.createDate(), value -> value.decode(decoding));
            case DataTypes.TIME -> read(CodecFactory.createTime(), value -> value.decode(decoding));
            case DataTypes.ENUM -> read(CodecFactory.createEnum(), value -> value.decode(decoding));
            default -> read(CodecFactory.createBuffer(), value -> value.decode(decoding));
        };
    }

    private static <T> T read(T value, ToIntFunction<T> decode) {
        int code = decode.applyAsInt(value);
        check(code, "a value");
        return code == CodecReturnCodes.BLANK_DATA ? null : value;
    }

    private double rate(String task, double seconds) {
        long limit = (long) (seconds * 1e9);
        long start = System.nanoTime();
        long done = 0;
        long spent;
        do {
            switch (task) {
                case "walk" -> { for (int i = 0; i < BATCH; i++) walk(); }
                case "decode" -> { for (int i = 0; i < BATCH; i++) decode(); }
                case "convert" -> { for (int i = 0; i < BATCH; i++) convert(); }
                case "encode" -> { for (int i = 0; i < BATCH; i++) encode(); }
                default -> throw new IllegalArgumentException(task);
            }
            done += BATCH;
            spent = System.nanoTime() - start;
        } while (spent < limit);
        return done * 1e3 / spent;
    }

    /** Up to the first field. */
    private void begin() {
        decoding.clear();
        check(decoding.setBufferAndRWFVersion(message, Codec.majorVersion(), Codec.minorVersion()), "the buffer");
        check(received.decode(decoding), "the message");
        check(list.decode(decoding, null), "the list");
    }

    private void walk() {
        begin();
        for (int code = entry.decode(decoding); code != CodecReturnCodes.END_OF_CONTAINER; code = entry.decode(decoding)) {
            check(code, "a field");
            sum += entry.fieldId();
        }
    }

    private void decode() {
        begin();
        for (int code = entry.decode(decoding); code != CodecReturnCodes.END_OF_CONTAINER; code = entry.decode(decoding)) {
            check(code, "a field");
            switch (dictionary.entry(entry.fieldId()).rwfType()) {
                case DataTypes.INT -> { if (integer.decode(decoding) == CodecReturnCodes.SUCCESS) sum += integer.toLong(); }
                case DataTypes.UINT -> { if (unsigned.decode(decoding) == CodecReturnCodes.SUCCESS) sum += unsigned.toLong(); }
                case DataTypes.REAL -> { if (real.decode(decoding) == CodecReturnCodes.SUCCESS) sum += real.toLong(); }
                case DataTypes.ENUM -> { if (this.code.decode(decoding) == CodecReturnCodes.SUCCESS) sum += this.code.toInt(); }
                case DataTypes.DATE -> { if (date.decode(decoding) == CodecReturnCodes.SUCCESS) sum += date.day(); }
                case DataTypes.TIME -> { if (time.decode(decoding) == CodecReturnCodes.SUCCESS) sum += time.second(); }
                default -> { if (text.decode(decoding) == CodecReturnCodes.SUCCESS) sum += text.length(); }
            }
        }
    }

    private void convert() {
        begin();
        for (int code = entry.decode(decoding); code != CodecReturnCodes.END_OF_CONTAINER; code = entry.decode(decoding)) {
            check(code, "a field");
            DictionaryEntry known = dictionary.entry(entry.fieldId());
            switch (known.rwfType()) {
                case DataTypes.INT -> { if (integer.decode(decoding) == CodecReturnCodes.SUCCESS) sum += integer.toLong(); }
                case DataTypes.UINT -> { if (unsigned.decode(decoding) == CodecReturnCodes.SUCCESS) sum += unsigned.toLong(); }
                case DataTypes.REAL -> { if (real.decode(decoding) == CodecReturnCodes.SUCCESS) sum += real.toDouble(); }
                case DataTypes.ENUM -> {
                    if (this.code.decode(decoding) == CodecReturnCodes.SUCCESS) {
                        EnumType type = dictionary.entryEnumType(known, this.code);
                        if (type != null) sum += type.display().length();
                    }
                }
                case DataTypes.DATE -> { if (date.decode(decoding) == CodecReturnCodes.SUCCESS) sum += date.day(); }
                case DataTypes.TIME -> {
                    if (time.decode(decoding) == CodecReturnCodes.SUCCESS) {
                        double seconds = (time.hour() * 60.0 + time.minute()) * 60 + time.second();
                        sum += seconds * 1e6 + time.millisecond() * 1e3 + time.microsecond();
                    }
                }
                default -> { if (text.decode(decoding) == CodecReturnCodes.SUCCESS) sum += text.length(); }
            }
        }
    }

    private void encode() {
        room.clear();
        out.data(room);
        encoding.clear();
        check(encoding.setBufferAndRWFVersion(out, Codec.majorVersion(), Codec.minorVersion()), "the buffer");
        sent.clear();
        sent.msgClass(MsgClasses.UPDATE);
        // Market price.
        sent.domainType(6);
        sent.streamId(5);
        sent.containerType(DataTypes.FIELD_LIST);
        check(sent.encodeInit(encoding, 0), "the message");
        list.clear();
        list.applyHasStandardData();
        check(list.encodeInit(encoding, null, 0), "the list");
        for (int at = 0; at < ids.length; at++) {
            entry.clear();
            entry.fieldId(ids[at]);
            entry.dataType(types[at]);
            Object value = values[at];
            int code = value == null ? entry.encodeBlank(encoding) : switch (types[at]) {
                case DataTypes.INT -> entry.encode(encoding, (Int) value);
                case DataTypes.UINT -> entry.encode(encoding, (UInt) value);
                case DataTypes.REAL -> entry.encode(encoding, (Real) value);
                case DataTypes.ENUM -> entry.encode(encoding, (com.refinitiv.eta.codec.Enum) value);
                case DataTypes.DATE -> entry.encode(encoding, (Date) value);
                case DataTypes.TIME -> entry.encode(encoding, (Time) value);
                default -> entry.encode(encoding, (Buffer) value);
            };
            check(code, "a field");
        }
        check(list.encodeComplete(encoding, true), "the end of the list");
        check(sent.encodeComplete(encoding, true), "the end of the message");
        sum += out.length();
    }
}
