//! Records: both ways of making them give the same, and what the views give.

use proptest::prelude::*;
use tapeline_feed::itch::encode::LONGEST;
use tapeline_feed::itch::{Decoder, ItchRecord, MalformedItchMessage, Message, MessageType, decode};
use tapeline_feed::simulate::{Exchange, SimulatedDay};

/// The quickest decoder, where it is another than the portable one.
fn permuting() -> Option<Decoder> {
    let decoder = Decoder::new();
    if !decoder.is_permuting() {
        println!("skipped: this processor has no AVX-512 VBMI");
    }
    decoder.is_permuting().then_some(decoder)
}

/// What the view of a message says, where a record must say it too.
fn agrees(record: &ItchRecord, message: &Message<'_>) -> bool {
    let prefix = message.prefix().unwrap();
    let symbol = message.stock().is_none_or(|stock| stock.0 == record.stock);
    let fields = match *message {
        Message::AddOrder(m) => {
            (m.reference().0, m.side().0, m.shares(), m.price().0)
                == (record.reference, record.code, record.shares, record.price)
        }
        Message::AddOrderAttributed(m) => {
            (m.reference().0, m.side().0, m.shares(), m.price().0, m.attribution().0)
                == (record.reference, record.code, record.shares, record.price, record.fifth.to_be_bytes())
        }
        Message::OrderExecuted(m) => {
            (m.reference().0, m.shares(), m.match_number().0)
                == (record.reference, record.shares, record.other)
        }
        Message::OrderExecutedWithPrice(m) => {
            (m.reference().0, m.shares(), m.match_number().0, m.printable().0, m.price().0)
                == (record.reference, record.shares, record.other, record.code, record.price)
        }
        Message::OrderCancel(m) => (m.reference().0, m.shares()) == (record.reference, record.shares),
        Message::OrderDelete(m) => m.reference().0 == record.reference,
        Message::OrderReplace(m) => {
            (m.reference().0, m.new_reference().0, m.shares(), m.price().0)
                == (record.reference, record.other, record.shares, record.price)
        }
        Message::Trade(m) => {
            (m.shares(), m.price().0, m.match_number().0) == (record.shares, record.price, record.other)
        }
        Message::CrossTrade(m) => {
            (m.shares(), m.price().0, m.match_number().0, m.cross().0)
                == (record.reference, record.price, record.other, record.code)
        }
        Message::BrokenTrade(m) => m.match_number().0 == record.other,
        Message::NetOrderImbalance(m) => {
            (m.paired(), m.imbalance(), m.direction().0, m.cross().0, m.variation().0)
                == (record.reference, record.other, record.code, record.code_2, record.code_3)
                && (m.far().0, m.near().0, m.reference_price().0)
                    == (record.third, record.fourth, record.price)
        }
        Message::SystemEvent(m) => m.event().0 == record.code,
        Message::StockDirectory(m) => {
            (m.market_category().0, m.financial_status().0, m.round_lot(), m.etp_leverage(), m.inverse().0)
                == (record.code, record.code_2, record.shares, record.third, record.code_4)
                && [m.authenticity().0, m.short_sale_threshold().0, m.ipo_flag().0, m.luld_tier().0]
                    == record.fifth.to_be_bytes()
                && m.etp_flag().0 == record.code_3
                && m.issue_sub_type().0 == record.fourth.to_be_bytes()[2..]
        }
        Message::TradingAction(m) => (m.state().0, m.reason().0) == (record.code, record.fifth.to_be_bytes()),
        Message::RegSho(m) => m.action().0 == record.code,
        Message::ParticipantPosition(m) => {
            (m.mpid().0, m.primary().0, m.mode().0, m.state().0)
                == (record.fifth.to_be_bytes(), record.code, record.code_2, record.code_3)
        }
        Message::BreakerLevels(m) => {
            (m.level_1().0, m.level_2().0, m.level_3().0)
                == (record.reference, record.other, u64::from_be_bytes(record.stock))
        }
        Message::BreakerStatus(m) => m.level().0 == record.code,
        Message::IpoQuoting(m) => {
            (m.release_s(), m.qualifier().0, m.price().0) == (record.third, record.code, record.price)
        }
        Message::AuctionCollar(m) => {
            (m.reference_price().0, m.upper().0, m.lower().0, m.extension())
                == (record.price, record.third, record.fourth, record.fifth)
        }
        Message::OperationalHalt(m) => (m.market().0, m.action().0) == (record.code, record.code_2),
        Message::RetailInterest(m) => m.interest().0 == record.code,
        Message::DirectListing(m) => {
            (m.eligible().0, m.min_price().0, m.max_price().0, m.near_price().0, m.near_time())
                == (record.code, record.third, record.fourth, record.price, record.reference)
                && (m.lower().0, m.upper().0) == (record.shares, record.fifth)
        }
        Message::Unknown(_) => record.flags == 0,
    };
    (prefix.locate.0, prefix.ts_ns, message.kind().letter()) == (record.locate, record.ts_ns, record.kind)
        && symbol
        && fields
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn both_ways_give_the_same_records(
        kind in prop_oneof![4 => prop::sample::select(&MessageType::ALL[..]).prop_map(MessageType::letter), 1 => any::<u8>()],
        mut bytes in prop::collection::vec(any::<u8>(), 0..600),
        more in -3_i64..5, exactly in any::<bool>(),
    ) {
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        // Lengths around the type's own, as often as any.
        if let (true, Some(kind)) = (exactly, MessageType::of(kind)) {
            bytes.resize((kind.length() as i64 + more) as usize, 0xA5);
        }
        let record = Decoder::portable().record(&bytes);
        if let Some(permuting) = permuting() {
            prop_assert_eq!(permuting.record(&bytes), record);
        }
        match decode(&bytes) {
            Ok(Message::Unknown(unknown)) => {
                prop_assert_eq!((record.kind, record.flags), (unknown[0], 0));
                prop_assert!(bytes.len() < 11 || agrees(&record, &Message::Unknown(unknown)));
            }
            Ok(message) => {
                prop_assert!(record.is_whole() && agrees(&record, &message), "{message:?} {record:?}");
                prop_assert_eq!(record.flags & ItchRecord::LONGER != 0, message.extra_bytes(&bytes) > 0);
                prop_assert_eq!(record.check(bytes.len()), Ok(()));
            }
            Err(malformed) => {
                prop_assert!(!record.is_whole());
                prop_assert_eq!(record.check(bytes.len()), Err(malformed));
                let ItchRecord { kind, flags, .. } = record;
                prop_assert_eq!(record, ItchRecord { kind, flags, ..Decoder::portable().record(&[]) });
            }
        }
    }

    #[test]
    fn a_batch_is_its_messages_one_by_one(seed in any::<u64>(), room in 0_usize..40, cut in 0_usize..20) {
        let mut exchange = Exchange::new(SimulatedDay { seed, symbols: 5, live_orders: 500 });
        let mut bytes = [0; LONGEST];
        let messages: Vec<Vec<u8>> = (0..37)
            .map(|k| {
                let length = exchange.next(k, &mut bytes).unwrap();
                bytes[..if k % 9 == 8 { cut.min(length) } else { length }].to_vec()
            })
            .collect();
        for decoder in [Decoder::portable(), Decoder::new()] {
            let mut records = vec![ItchRecord::default(); room];
            let mut rest = messages.iter().map(Vec::as_slice);
            let count = decoder.fill(&mut rest, &mut records);
            prop_assert_eq!(count, room.min(37));
            // None is lost: the next batch begins where this one ended.
            prop_assert_eq!(rest.len(), 37 - count);
            for (record, message) in records.iter().zip(&messages) {
                prop_assert_eq!(*record, Decoder::portable().record(message));
            }
        }
    }
}

/// Behind a block as large as this the allocator leaves nothing, so that in most processes reading on would be a fault.
#[test]
fn a_message_at_the_end_of_its_memory_is_read() {
    let mut memory = vec![b'A'; (1 << 18) - 16];
    let end = memory.len();
    for kind in MessageType::ALL {
        let at = end - kind.length();
        memory[at] = kind.letter();
        let record = Decoder::new().record(&memory[at..]);
        assert_eq!(record, Decoder::portable().record(&memory[at..]));
        assert!(record.is_whole() && record.flags & ItchRecord::LONGER == 0, "{kind}");
    }
    assert_eq!(Decoder::new().record(&[]).check(0), Err(MalformedItchMessage::Empty));
}
