//! Rows in every form in which they are sent.
use tapeline_kdb::{Column, Encoder, Order, Refused, Type, Update, View};

/// Returns the columns of a message's rows as text, after the number of rows.
fn shown(write: impl FnOnce(&mut Encoder<'_>) -> Result<(), Refused>) -> String {
    let mut room = [0; 512];
    let mut message = Encoder::value_alone(&mut room);
    write(&mut message).unwrap();
    let len = message.finish().unwrap();
    let view = View::parse(&room[..len], Order::Little).unwrap();
    let update = Update::of(&view).unwrap();
    let mut text = format!("{} {}:", update.table.escape_ascii(), update.rows.len());
    for column in update.rows.columns() {
        text.push(' ');
        match column {
            Column::Vector(vector) => vector.iter().for_each(|atom| text.push_str(&atom.to_string())),
            Column::List(list) => list.iter().for_each(|cell| match cell.name() {
                Some(name) => text.push_str(&format!("{name:?}")),
                None => text.push_str(cell.kind().name()),
            }),
        }
    }
    text
}

fn begin(message: &mut Encoder<'_>) -> Result<(), Refused> {
    message.list(3)?;
    message.symbol(b".u.upd")?;
    message.symbol(b"trade")
}

#[test]
fn columns() {
    let text = shown(|message| {
        begin(message)?;
        message.list(3)?;
        message.symbols([b"A".as_slice(), b""])?;
        message.column(Type::LONG, [1_i64, i64::MIN])?;
        message.list(2)?;
        message.string(b"x")?;
        message.string(b"yz")
    });
    assert_eq!(text, "trade 2: `A` 10N [120][121, 122]");
}

#[test]
fn a_row_of_cells() {
    let text = shown(|message| {
        begin(message)?;
        message.list(4)?;
        message.symbol(b"A")?;
        // A vector of one item in place of a cell counts as a cell, not as a column.
        message.column(Type::LONG, [5_i64])?;
        message.atom(&tapeline_kdb::Atom::<&[u8]>::Float(1.5))?;
        message.string(b"note")
    });
    assert_eq!(text, "trade 1: `A long 1.5 [110, 111, 116, 101]");
}

#[test]
fn a_row_of_cells_of_one_type() {
    let floats = shown(|message| {
        begin(message)?;
        message.column(Type::FLOAT, [1.5, 2.5])
    });
    assert_eq!(floats, "trade 1: 1.5 2.5");
    let symbols = shown(|message| {
        begin(message)?;
        message.symbols([b"A".as_slice(), b"", b"XNAS"])
    });
    assert_eq!(symbols, "trade 1: `A ` `XNAS");
}

#[test]
fn a_table() {
    let text = shown(|message| {
        begin(message)?;
        message.table([b"sym".as_slice(), b"size"])?;
        message.symbols([b"A".as_slice(), b"B"])?;
        message.column(Type::INT, [1, 2])
    });
    assert_eq!(text, "trade 2: `A`B 1i2i");
}

#[test]
fn names_as_strings_and_no_rows() {
    let text = shown(|message| {
        message.list(3)?;
        message.string(b"upd")?;
        message.string(b"quote")?;
        message.list(0)
    });
    assert_eq!(text, "quote 0:");
}

/// An update of three columns, with the most significant byte first: integers, symbols, and a list of a string and an
/// integer.
const FROM_A_SPARC: [u8; 62] = [
    0, 0, 0, 0, 0, 3, 245, b'u', b'p', b'd', 0, 245, b't', 0, 0, 0, 0, 0, 0,
    3, // the list, its names, the columns
    6, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 1, 0, // ints: 1 256
    11, 0, 0, 0, 0, 2, b'A', 0, b'B', 0, // symbols
    0, 0, 0, 0, 0, 2, 10, 0, 0, 0, 0, 1, b'x', 250, 0, 0, 0, 7, // a string, an int
];

#[test]
fn cells_are_passed_on_from_either_order() {
    let view = View::parse(&FROM_A_SPARC, Order::Big).unwrap();
    let update = Update::of(&view).unwrap();
    let columns: Vec<Vec<u8>> = update
        .rows
        .columns()
        .map(|column| {
            let mut cells = Vec::new();
            column.append_to(&mut cells);
            cells
        })
        .collect();
    let text = shown(|message| {
        begin(message)?;
        message.list(3)?;
        message.cells(Type::INT, 2, &columns[0])?;
        message.cells(Type::SYMBOL, 2, &columns[1])?;
        message.cells(Type::LIST, 2, &columns[2])
    });
    assert_eq!(text, "trade 2: 1i256i `A`B [120]int");
    let text = shown(|message| {
        begin(message)?;
        message.list(3)?;
        message.cell(Type::INT, &columns[0][..4])?;
        message.cell(Type::SYMBOL, b"A\0")?;
        message.cell(Type::LIST, &columns[2][..7])
    });
    assert_eq!(text, "trade 1: 1i `A [120]");
    assert!(matches!(
        Encoder::value_alone(&mut [0; 64]).cells(Type::INT, 3, &columns[0]),
        Err(Refused::Miscounted { said: 3, came: 2 })
    ));
}
