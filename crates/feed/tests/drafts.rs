//! From messages to the fields of an update.

use tapeline_feed::book::BookSettings;
use tapeline_feed::draft::{
    Auction, BrokenTrade, Changed, Conditions, Detail, Draft, DraftQuote, ImbalanceSide, Price, Reason,
    Trade, TradingStatus, Variation,
};
use tapeline_feed::iex;
use tapeline_feed::itch::encode::{self, PrefixFields, text};
use tapeline_feed::itch::{MalformedItchMessage, Side};
use tapeline_feed::normalise::{Iex, Instrument, Itch};
use tapeline_nanos::Nanos;
use tapeline_omm::rwf::UpdateType;
use tapeline_omm::{Dictionary, FieldList, FieldListEncoder};

/// Midnight in New York, winter time, of a day in GMT.
const MIDNIGHT: Nanos = Nanos(20_000 * 86_400_000_000_000 + 5 * 3_600_000_000_000);

/// 09:30:00.000000001 in New York.
const OPENING: u64 = (9 * 3_600 + 30 * 60) * 1_000_000_000 + 1;

struct Rig(Itch);

macro_rules! apply {
    ($rig:expr, $message:expr) => {{
        let mut bytes = [0; encode::LONGEST];
        let length =
            $message.encode(PrefixFields { locate: 13, tracking: 0, ts_ns: OPENING }, &mut bytes).unwrap();
        $rig.0.apply(&bytes[..length]).unwrap().change
    }};
}

impl Rig {
    fn new() -> Self {
        Self(Itch::new(BookSettings::default(), MIDNIGHT))
    }
}

/// The fields as people read them.
fn fields(draft: &Draft) -> String {
    with_detail(draft, None)
}

fn with_detail(draft: &Draft, detail: Option<&Detail>) -> String {
    let mut buffer = [0; Draft::MAX_BYTES];
    let mut list = FieldListEncoder::new(&mut buffer).unwrap();
    draft.encode(detail, &mut list).unwrap();
    let length = list.finish();
    FieldList::parse(&buffer[..length]).unwrap().render(Dictionary::builtin()).to_string()
}

fn add(reference: u64, side: u8, shares: u32, price: u32) -> encode::AddOrder {
    encode::AddOrder { reference, side, shares, stock: text("AAPL"), price }
}

#[test]
fn each_change_becomes_its_kind_of_update() {
    let mut rig = Rig::new();
    let draft = apply!(rig, add(1, b'B', 100, 3_214_000)).unwrap();
    assert_eq!((draft.update, rig.0.name(Instrument(13))), (UpdateType::QUOTE, Some("AAPL")));
    assert_eq!(fields(&draft), "BID=321.4000 BIDSIZE=100 QUOTIM_NS=14:30:00.000000001");

    // Behind the best: nothing that is published changes.
    assert_eq!(apply!(rig, add(2, b'B', 50, 3_213_900)), None);
    let draft = apply!(rig, add(3, b'S', 7, 3_214_100)).unwrap();
    assert_eq!(fields(&draft), "ASK=321.4100 ASKSIZE=7 QUOTIM_NS=14:30:00.000000001");

    let executed = encode::OrderExecuted { reference: 1, shares: 40, match_number: 9 };
    let draft = apply!(rig, executed).unwrap();
    assert_eq!(draft.update, UpdateType::QUOTES_TRADE);
    assert_eq!(
        fields(&draft),
        "TRDPRC_1=321.4000 BIDSIZE=60 ACVOL_1=40 NUM_MOVES=1 TRDVOL_1=40 TRADE_ID=9 COND_N= AGGRS_SID1=ASK \
         QUOTIM_NS=14:30:00.000000001 SALTIM_NS=14:30:00.000000001"
    );

    let hidden = encode::Trade {
        reference: 0,
        side: b'B',
        shares: 5,
        stock: text("AAPL"),
        price: 3_214_050,
        match_number: 10,
    };
    let draft = apply!(rig, hidden).unwrap();
    assert_eq!(draft.update, UpdateType::TRADE);
    assert_eq!(
        fields(&draft),
        "TRDPRC_1=321.4050 ACVOL_1=45 NUM_MOVES=2 TRDVOL_1=5 TRADE_ID=10 COND_N=P AGGRS_SID1= \
         SALTIM_NS=14:30:00.000000001"
    );

    let draft = apply!(rig, encode::OrderDelete { reference: 3 }).unwrap();
    assert_eq!((draft.update, draft.ask), (UpdateType::QUOTE, None));
    // An emptied side is written as fields without a value.
    let emptied = fields(&draft);
    assert!(emptied.starts_with("ASK=") && !emptied.contains("321") && !emptied.contains('7'), "{emptied}");

    let halt =
        encode::TradingAction { stock: text("AAPL"), state: b'P', reserved: b' ', reason: text("LUDP") };
    let draft = apply!(rig, halt).unwrap();
    assert_eq!(
        (draft.update, draft.status, draft.reason),
        (UpdateType::UNSPECIFIED, TradingStatus::HALTED, Reason::new("LUDP"))
    );
    assert!(fields(&draft).contains("HALT_REASN=LUDP"), "{}", fields(&draft));
    assert!(fields(&draft).contains("TRD_STATUS"), "{}", fields(&draft));
    assert_eq!(apply!(rig, halt), None);

    let image = rig.0.image(Instrument(13)).unwrap();
    assert_eq!(image.changed, Changed::ALL);
    assert_eq!((image.trades, image.volume), (2, 45));
    assert_eq!(rig.0.image(Instrument(14)), None);
    // No locate has such a number.
    assert_eq!(rig.0.image(Instrument(65_536 + 13)), None);
    assert_eq!(rig.0.instruments().collect::<Vec<_>>(), [Instrument(13)]);
}

#[test]
fn the_largest_draft_fits_its_stated_size() {
    let price = Price { mantissa: i64::MIN, decimals: 14 };
    let quote = Some(DraftQuote { price, size: u64::MAX, size_decimals: 14 });
    let draft = Draft {
        update: UpdateType::UNSPECIFIED,
        changed: Changed::ALL,
        bid: quote,
        ask: quote,
        quote_ns: Some(86_399_999_999_999),
        trade: Some(Trade {
            price,
            size: u64::MAX,
            size_decimals: 14,
            id: u64::MAX,
            aggressor: Some(Side::Ask),
            conditions: Conditions::new(*b"ABCDEF"),
        }),
        trade_ns: Some(86_399_999_999_999),
        volume: u64::MAX,
        volume_decimals: 14,
        trades: u64::MAX,
        status: TradingStatus(u16::MAX),
        reason: Reason::new("ABCDEFGH"),
    };
    let auction = Auction {
        kind: b'O',
        paired: u64::MAX,
        imbalance: u64::MAX,
        side: ImbalanceSide(u16::MAX),
        reference: Some(price),
        near: Some(price),
        far: Some(price),
        variation: Variation(u16::MAX),
        due_ns: Some(86_399_999_999_999),
        extensions: Some(u8::MAX),
        at_ns: 86_399_999_999_999,
    };
    let broken = BrokenTrade { id: u64::MAX, traded: Some((price, u64::MAX)), at_ns: 86_399_999_999_999 };
    assert!(!fields(&draft).is_empty());
    for detail in [Detail::Auction(auction), Detail::Broken(broken)] {
        assert!(with_detail(&draft, Some(&detail)).contains("_NS"));
    }
    let mut short = [0; 40];
    let mut list = FieldListEncoder::new(&mut short).unwrap();
    assert!(draft.encode(None, &mut list).is_err());
}

#[test]
fn corrections_and_operational_halts_are_updates() {
    let mut rig = Rig::new();
    let _ = apply!(rig, add(1, b'B', 100, 3_214_000));
    let _ = apply!(rig, encode::OrderExecuted { reference: 1, shares: 40, match_number: 9 });
    let draft = apply!(rig, encode::BrokenTrade { match_number: 9 }).unwrap();
    assert_eq!((draft.update, draft.volume, draft.trades), (UpdateType::CORRECTION, 0, 0));
    assert_eq!(fields(&draft), "ACVOL_1=0 NUM_MOVES=0");
    assert_eq!(
        with_detail(&draft, rig.0.detail()),
        "ACVOL_1=0 NUM_MOVES=0 CAN_PRC=321.4000 CAN_VOL=40 CAN_TRD_ID=9 CAN_TIM_NS=14:30:00.000000001"
    );
    // One that is not remembered, such as from before a restart, is named all the same: only the sums stay.
    let draft = apply!(rig, encode::BrokenTrade { match_number: 77 }).unwrap();
    assert_eq!(draft.update, UpdateType::CORRECTION);
    assert_eq!(
        with_detail(&draft, rig.0.detail()),
        "ACVOL_1=0 NUM_MOVES=0 CAN_PRC= CAN_VOL= CAN_TRD_ID=77 CAN_TIM_NS=14:30:00.000000001"
    );
    let halt = encode::OperationalHalt { stock: text("AAPL"), market: b'Q', action: b'H' };
    let draft = apply!(rig, halt).unwrap();
    assert_eq!(draft.status, TradingStatus::HALTED);
    let draft = apply!(rig, encode::OperationalHalt { action: b'T', ..halt }).unwrap();
    assert_eq!(draft.status, TradingStatus::UNDEFINED, "no trading state has come");
}

#[test]
fn odd_messages_are_counted_and_change_nothing() {
    let mut rig = Rig::new();
    assert_eq!(rig.0.apply(&[]), Err(MalformedItchMessage::Empty));
    assert!(rig.0.apply(b"A too short").is_err());
    let unknown = rig.0.apply(b"zz").unwrap();
    assert_eq!((unknown.letter, unknown.instrument, unknown.change), (b'z', Instrument(0), None));
    let mut longer = [0; 30];
    encode::OrderDelete { reference: 5 }.encode(PrefixFields::default(), &mut longer).unwrap();
    assert_eq!(rig.0.apply(&longer).unwrap().change, None);
    assert_eq!(apply!(rig, encode::BrokenTrade { match_number: 3 }), None);
    let counters = rig.0.counters();
    assert_eq!((counters.empty, counters.short.of(b'A'), counters.longer.of(b'D')), (1, 1, 1));
    assert_eq!((counters.messages.total(), counters.messages.of(b'z'), counters.broken_trades), (3, 1, 1));
    assert_eq!(rig.0.books().counters().unknown_reference.of(b'D'), 1);
}

#[test]
fn trades_say_who_came_and_under_what_conditions() {
    let mut rig = Rig::new();
    let _ = apply!(rig, add(1, b'S', 100, 3_214_000));
    let told = |draft: Draft| {
        let trade = draft.trade.unwrap();
        (trade.id, trade.aggressor, trade.conditions.as_str().to_owned())
    };
    let executed = encode::OrderExecuted { reference: 1, shares: 40, match_number: 9 };
    assert_eq!(told(apply!(rig, executed).unwrap()), (9, Some(Side::Bid), String::new()));
    let priced = encode::OrderExecutedWithPrice {
        reference: 1,
        shares: 40,
        match_number: 10,
        printable: b'Y',
        price: 3_213_900,
    };
    assert_eq!(told(apply!(rig, priced).unwrap()), (10, Some(Side::Bid), "C".to_owned()));
    let cross = encode::CrossTrade {
        shares: 1_000,
        stock: text("AAPL"),
        price: 3_214_000,
        match_number: 11,
        cross: b'O',
    };
    let draft = apply!(rig, cross).unwrap();
    assert_eq!(told(draft), (11, None, "QO".to_owned()));
    // What is blank takes the place of what the last trade had.
    assert!(fields(&draft).contains("COND_N=QO AGGRS_SID1= SALTIM_NS"), "{}", fields(&draft));
}

#[test]
fn the_state_of_an_auction_is_an_update_of_its_own() {
    let mut rig = Rig::new();
    let imbalance = encode::NetOrderImbalance {
        paired: 5_000,
        imbalance: 300,
        direction: b'S',
        stock: text("AAPL"),
        far: 0,
        near: 3_214_100,
        reference_price: 3_214_000,
        cross: b'C',
        variation: b'A',
    };
    let draft = apply!(rig, imbalance).unwrap();
    assert_eq!((draft.update, draft.changed.auction), (UpdateType::UNSPECIFIED, true));
    assert_eq!(fields(&draft), "");
    assert_eq!(
        with_detail(&draft, rig.0.detail()),
        "INDAUCTYPE=C IMB_PR_FR= IMB_PR_NR=321.4100 IMB_PR_REF=321.4000 IMB_PR_SH=5000 IMB_SH=300 IMB_SIDE=S \
         IMB_VA_IND=A AUC_TIME= AUC_EX_NO= IMB_TIM_NS=14:30:00.000000001"
    );
}

/// Applies a message of IEX; what comes of it, with its detail.
fn of_iex(iex: &mut Iex, message: &[u8]) -> String {
    let draft = iex.apply(message).unwrap().change.unwrap();
    with_detail(&draft, if draft.changed.has_detail() { iex.detail() } else { None })
}

#[test]
fn iex_tells_conditions_breaks_and_auctions() {
    const AT: u64 = 1_499_697_155_000_000_007;
    let mut iex = Iex::new(iex::IexSettings::default());
    let mut out = [0; 80];
    let trade = iex::encode::TradeReport {
        flags: 0x80 | 0x20 | 0x08 | 0x01,
        symbol: text("ZEXIT"),
        size: 100,
        price: 100_500,
        trade: 429_974,
    };
    let length = trade.encode(AT, &mut out).unwrap();
    assert_eq!(
        of_iex(&mut iex, &out[..length]),
        "TRDPRC_1=10.0500 ACVOL_1=100 NUM_MOVES=1 TRDVOL_1=100 TRADE_ID=429974 COND_N=FIX AGGRS_SID1= \
         SALTIM_NS=14:32:35.000000007"
    );
    let broken = iex::encode::TradeBreak {
        flags: 0x80,
        symbol: text("ZEXIT"),
        size: 100,
        price: 100_500,
        trade: 429_974,
    };
    let length = broken.encode(AT + 1, &mut out).unwrap();
    assert_eq!(
        of_iex(&mut iex, &out[..length]),
        "ACVOL_1=0 NUM_MOVES=0 CAN_PRC=10.0500 CAN_VOL=100 CAN_TRD_ID=429974 CAN_TIM_NS=14:32:35.000000008"
    );
    let auction = iex::encode::AuctionInformation {
        kind: b'O',
        symbol: text("ZEXIT"),
        paired: 100_000,
        reference: 100_000,
        indicative: 100_100,
        imbalance: 10_000,
        side: b'B',
        extensions: 0,
        scheduled_s: 1_499_698_800,
        book_clearing: 0,
        collar: 100_000,
        lower: 95_000,
        upper: 105_000,
    };
    let length = auction.encode(AT + 2, &mut out).unwrap();
    assert_eq!(
        of_iex(&mut iex, &out[..length]),
        "INDAUCTYPE=O IMB_PR_FR= IMB_PR_NR=10.0100 IMB_PR_REF=10.0000 IMB_PR_SH=100000 IMB_SH=10000 IMB_SIDE=B \
         IMB_VA_IND= AUC_TIME=15:00:00 AUC_EX_NO=0 IMB_TIM_NS=14:32:35.000000009"
    );
}
