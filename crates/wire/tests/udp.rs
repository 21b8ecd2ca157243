//! Sockets over the loopback interface, through the public interface.
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tapeline_measure::Nanos;
use tapeline_wire::Error;
use tapeline_wire::rssl::Reactor;
use tapeline_wire::udp::{
    Batch, MAX_SEGMENTS, ReceiveOptions, SPARE_BYTES, SendOptions, UdpReceiver, UdpSender, UdpSent, wait_any,
    wait_any_or,
};

/// Far longer than loopback ever needs: a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

const LOOPBACK: &str = "127.0.0.1";

fn group(last: u8, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(239, 255, 77, last), port)
}

fn on_loopback(address: SocketAddrV4) -> ReceiveOptions {
    ReceiveOptions { interface: LOOPBACK.to_owned(), ..ReceiveOptions::new(address) }
}

fn receiver(address: SocketAddrV4) -> UdpReceiver {
    UdpReceiver::open(&on_loopback(address)).unwrap()
}

fn unicast() -> UdpReceiver {
    receiver(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))
}

fn sender(destination: SocketAddrV4) -> UdpSender {
    UdpSender::open(&SendOptions { interface: LOOPBACK.to_owned(), ..SendOptions::new(destination) }).unwrap()
}

/// Receives until there are `count` datagrams.
fn take(receiver: &mut UdpReceiver, count: usize) -> Vec<Vec<u8>> {
    let mut batch = Batch::default();
    let mut taken = Vec::new();
    while taken.len() < count {
        assert!(receiver.wait(PATIENCE), "{} of {count} datagrams came", taken.len());
        receiver.receive(&mut batch).unwrap();
        taken.extend(batch.iter().map(|datagram| datagram.bytes.to_vec()));
    }
    taken
}

fn nothing_more(receiver: &mut UdpReceiver) -> bool {
    receiver.receive(&mut Batch::default()).unwrap() == 0
}

fn all(count: usize) -> UdpSent {
    UdpSent { count, blocked: false }
}

#[test]
fn multicast_reaches_every_receiver() {
    let mut first = receiver(group(1, 0));
    let mut second = receiver(first.local_address());
    let mut sender = sender(first.local_address());
    assert_eq!(sender.send(b"one").unwrap(), all(1));
    assert_eq!(sender.send_many([b"two".as_slice(), b"three"]).unwrap(), all(2));
    for receiver in [&mut first, &mut second] {
        assert_eq!(take(receiver, 3), [b"one".as_slice(), b"two", b"three"]);
        assert!(nothing_more(receiver));
    }
}

#[test]
fn unicast_tells_who_sent() {
    let mut receiver = unicast();
    let mut sender = sender(receiver.local_address());
    assert_eq!(sender.destination(), receiver.local_address());
    assert_eq!(sender.send(b"quote").unwrap(), all(1));
    let mut batch = Batch::default();
    assert!(receiver.wait(PATIENCE));
    assert_eq!(receiver.receive(&mut batch).unwrap(), 1);
    let datagram = batch.datagram(0).unwrap();
    assert_eq!((datagram.bytes, datagram.source), (b"quote".as_slice(), sender.local_address()));
    assert!(!datagram.truncated && batch.datagram(1).is_none());
}

#[test]
fn an_answer_goes_back_to_who_asked() {
    let (mut client, mut server) = (unicast(), unicast());
    assert!(client.send_to(b"request", server.local_address()).unwrap());
    let mut batch = Batch::default();
    assert!(server.wait(PATIENCE));
    assert_eq!(server.receive(&mut batch).unwrap(), 1);
    let request = batch.iter().next().unwrap();
    assert_eq!((request.bytes, request.source), (&b"request"[..], client.local_address()));
    assert!(server.send_to(b"answer", request.source).unwrap());
    assert_eq!(take(&mut client, 1), [b"answer"]);

    let too_long = client.send_to(&[0; 65_508], server.local_address());
    assert!(matches!(too_long, Err(Error::TooLong { length: 65_508, .. })), "{too_long:?}");
    // If no process listens, the datagram is lost on its way, as any datagram can be.
    let nobody = unicast().local_address();
    for _ in 0..3 {
        client.send_to(b"request", nobody).unwrap();
    }
}

#[test]
fn mixed_sizes_arrive_in_order_in_one_batch() {
    let mut receiver = unicast();
    let mut sender = sender(receiver.local_address());
    let datagrams: Vec<Vec<u8>> = [0, 1, 63, 64, 65, 1400, 1472, 2048]
        .iter()
        .map(|&n| (0..n).map(|i| (i * 7 + n) as u8).collect())
        .collect();
    assert_eq!(sender.send_many(&datagrams).unwrap(), all(datagrams.len()));
    let mut batch = Batch::new(datagrams.len(), 2048);
    // Loopback has queued everything when the send returns, or does so shortly after.
    let mut taken = Vec::new();
    while taken.len() < datagrams.len() {
        assert!(receiver.wait(PATIENCE));
        receiver.receive(&mut batch).unwrap();
        assert!(batch.iter().all(|d| d.padded.len() >= d.bytes.len() + SPARE_BYTES && !d.truncated));
        taken.extend(batch.iter().map(|d| d.bytes.to_vec()));
    }
    assert_eq!(taken, datagrams);
}

#[test]
fn a_batch_can_be_filled_again_and_moves_between_threads() {
    let mut receiver = unicast();
    let mut sender = sender(receiver.local_address());
    let mut batch = Batch::new(4, 100);
    for round in 0..10u8 {
        let size = 10 + usize::from(round);
        assert_eq!(sender.send_many(&vec![vec![round; size]; 6]).unwrap(), all(6));
        let mut seen = 0;
        while seen < 6 {
            assert!(receiver.wait(PATIENCE));
            seen += receiver.receive(&mut batch).unwrap();
            (batch, receiver, sender) = thread::spawn(move || {
                assert!(batch.iter().all(|d| d.bytes == vec![round; size]));
                (batch, receiver, sender)
            })
            .join()
            .unwrap();
        }
    }
}

#[test]
fn a_long_datagram_is_cut_and_flagged() {
    let mut receiver = unicast();
    let mut sender = sender(receiver.local_address());
    assert_eq!(sender.send_many([&[0xff; 300][..], &[0xee; 100][..]]).unwrap(), all(2));
    let mut batch = Batch::new(1, 100);
    for (truncated, byte) in [(true, 0xff), (false, 0xee)] {
        assert!(receiver.wait(PATIENCE));
        assert_eq!(receiver.receive(&mut batch).unwrap(), 1);
        let datagram = batch.datagram(0).unwrap();
        assert_eq!((datagram.truncated, datagram.bytes), (truncated, &[byte; 100][..]));
        assert!(datagram.padded[100..].iter().all(|&b| b == 0), "the kernel wrote behind the slot");
    }
}

#[test]
fn stamps_are_close_to_now_and_in_order() {
    let mut receiver = unicast();
    let mut sender = sender(receiver.local_address());
    let now = || Nanos(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64);
    let before = now();
    for _ in 0..20 {
        assert_eq!(sender.send(b"tick").unwrap(), all(1));
    }
    let mut batch = Batch::default();
    let mut stamps = Vec::new();
    while stamps.len() < 20 {
        assert!(receiver.wait(PATIENCE));
        receiver.receive(&mut batch).unwrap();
        stamps.extend(batch.iter().map(|datagram| datagram.received.unwrap()));
    }
    assert!(stamps.is_sorted(), "{stamps:?}");
    let second = 1_000_000_000;
    assert!(stamps[0].since(before) > -second && now().since(stamps[19]) > -second, "{before:?} {stamps:?}");
}

#[test]
fn without_stamps_there_are_none() {
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let mut receiver =
        UdpReceiver::open(&ReceiveOptions { stamps: false, ..ReceiveOptions::new(address) }).unwrap();
    assert_eq!(sender(receiver.local_address()).send(b"tick").unwrap(), all(1));
    let mut batch = Batch::default();
    assert!(receiver.wait(PATIENCE));
    assert_eq!(receiver.receive(&mut batch).unwrap(), 1);
    assert_eq!(batch.datagram(0).unwrap().received, None);
}

#[test]
fn kernel_drops_are_counted_without_reading() {
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let options = ReceiveOptions { receive_buffer: 4096, ..ReceiveOptions::new(address) };
    let mut receiver = UdpReceiver::open(&options).unwrap();
    let mut sender = sender(receiver.local_address());
    assert_eq!(receiver.ask_kernel_drops(), 0);
    let mut sent = 0;
    while receiver.ask_kernel_drops() == 0 {
        assert!(sent < 10_000, "no drop after {sent} datagrams into 4 KiB");
        sent += sender.send(&[7; 500]).unwrap().count;
    }
    let known = receiver.kernel_drops();
    assert!(known > 0);

    // All datagrams that were not dropped can be read, and a datagram queued after a drop carries the count.
    let mut batch = Batch::default();
    let mut taken = 0;
    while receiver.wait(Duration::ZERO) {
        taken += receiver.receive(&mut batch).unwrap();
    }
    assert_eq!(taken as u64 + receiver.ask_kernel_drops(), sent as u64);
}

#[test]
fn a_datagram_brings_the_drop_count_along() {
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let options = ReceiveOptions { receive_buffer: 4096, ..ReceiveOptions::new(address) };
    let mut receiver = UdpReceiver::open(&options).unwrap();
    let mut sender = sender(receiver.local_address());
    // A receive buffer of 4 KiB cannot contain that many.
    for _ in 0..1000 {
        assert_eq!(sender.send(&[7; 500]).unwrap().count, 1);
    }
    let mut batch = Batch::default();
    let mut rounds = 0;
    while receiver.kernel_drops() == 0 {
        assert!(rounds < 1000, "no datagram brought a count");
        rounds += 1;
        assert_eq!(sender.send(&[8; 500]).unwrap().count, 1);
        assert!(receiver.wait(PATIENCE));
        receiver.receive(&mut batch).unwrap();
    }
}

#[test]
fn every_datagram_of_a_large_send_is_received_or_counted_as_dropped() {
    let mut receiver = unicast();
    let mut sender = sender(receiver.local_address());
    let datagrams: Vec<[u8; 4]> = (0..5000u32).map(u32::to_le_bytes).collect();
    assert_eq!(sender.send_many(&datagrams).unwrap(), all(5000));
    let mut batch = Batch::new(1024, 64);
    let mut last = None;
    let mut taken = 0;
    while taken + receiver.ask_kernel_drops() < 5000 {
        assert!(receiver.wait(PATIENCE), "{taken} came, {} dropped", receiver.kernel_drops());
        taken += receiver.receive(&mut batch).unwrap() as u64;
        for datagram in batch.iter() {
            let number = u32::from_le_bytes(datagram.bytes.try_into().unwrap());
            assert!(last < Some(number), "{number} after {last:?}");
            last = Some(number);
        }
    }
    assert_eq!(taken + receiver.ask_kernel_drops(), 5000);
}

#[test]
fn source_specific_multicast_takes_one_sender_only() {
    let mut any = receiver(group(2, 0));
    let from = |source: &str| ReceiveOptions {
        source: Some(source.parse().unwrap()),
        ..on_loopback(any.local_address())
    };
    let mut wanted = UdpReceiver::open(&from(LOOPBACK)).unwrap();
    let mut other = UdpReceiver::open(&from("203.0.113.1")).unwrap();
    let mut sender = sender(any.local_address());
    for datagram in [b"a", b"b"] {
        assert_eq!(sender.send(datagram).unwrap(), all(1));
    }
    assert_eq!(take(&mut any, 2), [b"a", b"b"]);
    assert_eq!(take(&mut wanted, 2), [b"a", b"b"]);
    assert!(nothing_more(&mut other));
}

#[test]
fn groups_on_one_port_do_not_leak_into_each_other() {
    let mut first = receiver(group(3, 0));
    let port = first.local_address().port();
    let mut second = receiver(group(4, port));
    for (last, text) in [(3, b"first"), (4, b"other"), (3, b"again")] {
        assert_eq!(sender(group(last, port)).send(text).unwrap(), all(1));
    }
    assert_eq!(take(&mut first, 2), [b"first", b"again"]);
    assert_eq!(take(&mut second, 1), [b"other"]);
    assert!(nothing_more(&mut first) && nothing_more(&mut second));
}

#[test]
fn waiting_for_several_ends_when_one_has_something() {
    let mut receivers = [unicast(), unicast(), unicast()];
    assert!(!wait_any(&receivers, Duration::ZERO));
    assert_eq!(sender(receivers[2].local_address()).send(b"x").unwrap(), all(1));
    assert!(wait_any(&receivers, PATIENCE));
    assert!(wait_any(&[&receivers[0], &receivers[2]], PATIENCE));
    assert!(!wait_any(&[&receivers[0], &receivers[1]], Duration::ZERO));
    assert_eq!(take(&mut receivers[2], 1), [b"x"]);
    assert!(!wait_any(&receivers, Duration::from_millis(1)));
    assert!(!wait_any::<UdpReceiver>(&[], Duration::from_secs(3600)));
}

#[test]
fn waiting_for_datagrams_and_for_connections_ends_with_either() {
    let mut reactor = Reactor::new(1).unwrap();
    let receivers = [unicast(), unicast()];
    assert!(!wait_any_or(&receivers, &reactor, Duration::ZERO));
    assert_eq!(sender(receivers[1].local_address()).send(b"x").unwrap(), all(1));
    assert!(wait_any_or(&receivers, &reactor, PATIENCE));
    let none: [UdpReceiver; 0] = [];
    assert!(!wait_any_or(&none, &reactor, Duration::from_millis(1)));
    let waker = reactor.waker().unwrap();
    waker.wake().unwrap();
    assert!(wait_any_or(&none, &reactor, PATIENCE));
    // Until the event was consumed.
    reactor.wait(Duration::ZERO).unwrap();
    assert!(!wait_any_or(&none, &reactor, Duration::ZERO));
}

#[test]
fn nobody_listening_is_counted_and_not_fatal() {
    // A socket connected to one far address only reserves the port against other tests, and sends no answers.
    let deaf = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    deaf.connect((Ipv4Addr::LOCALHOST, 9)).unwrap();
    let mut sender = sender(SocketAddrV4::new(Ipv4Addr::LOCALHOST, deaf.local_addr().unwrap().port()));
    let mut sent = 0;
    for _ in 0..100 {
        sent += sender.send_many([b"x"; 10].iter()).unwrap().count;
        sent += sender.send(b"x").unwrap().count;
    }
    assert_eq!(sent, 1100);
    assert!(sender.network_errors() > 0);
}

#[test]
fn segments_arrive_as_datagrams_of_their_own() {
    let mut receiver = unicast();
    let mut sender = sender(receiver.local_address());
    let bytes: Vec<u8> = (0..1000).map(|i| (i / 300) as u8).collect();
    assert_eq!(sender.send_segmented(&bytes, 300).unwrap(), all(4));
    assert_eq!(take(&mut receiver, 4), [vec![0; 300], vec![1; 300], vec![2; 300], vec![3; 100]]);
    let too_many = sender.send_segmented(&[0; MAX_SEGMENTS + 1], 1).unwrap_err();
    assert!(matches!(too_many, Error::TooLong { length: 65, .. }), "{too_many}");
}

/// Datagrams of these lengths, one behind the other, and apart.
fn contiguous(lengths: &[usize]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let apart: Vec<Vec<u8>> = lengths.iter().zip(1..).map(|(length, byte)| vec![byte; *length]).collect();
    (apart.concat(), apart)
}

#[test]
fn contiguous_datagrams_of_any_lengths_arrive_in_order() {
    let mut receiver = unicast();
    let mut sender = sender(receiver.local_address());
    let mut many = vec![1_400; 200];
    many.extend([7, 1_400, 0, 0, 0, 1_400, 1_400, 2_000, 2_000, 2_000, 1_400, 1_500, 1_500, 3]);
    for lengths in [&[][..], &[1], &[5, 5, 5, 4, 4, 9], &many] {
        let (bytes, apart) = contiguous(lengths);
        assert_eq!(sender.send_contiguous(&bytes, lengths).unwrap(), all(lengths.len()));
        assert!(take(&mut receiver, lengths.len()) == apart, "{lengths:?}");
    }
}

#[test]
fn datagrams_that_the_kernel_has_joined_are_taken_apart() {
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let mut receiver = UdpReceiver::open(&ReceiveOptions { joined: true, ..on_loopback(address) }).unwrap();
    let mut sender = sender(receiver.local_address());
    let lengths = [1_400, 1_400, 1_400, 1_000, 0, 1_400, 1_401, 9];
    let (bytes, apart) = contiguous(&lengths);
    assert_eq!(sender.send_contiguous(&bytes, &lengths).unwrap(), all(lengths.len()));
    let mut batch = Batch::new(64, 65_535);
    let (mut arrived, mut slots) = (Vec::new(), 0);
    while arrived.len() < lengths.len() && receiver.wait(PATIENCE) {
        slots += receiver.receive(&mut batch).unwrap();
        for datagram in batch.apart() {
            assert!(datagram.received.is_some() && datagram.source == sender.local_address());
            assert!(!datagram.truncated && datagram.padded.starts_with(datagram.bytes));
            assert!(datagram.padded.len() >= datagram.bytes.len() + SPARE_BYTES);
            arrived.push(datagram.bytes.to_vec());
        }
    }
    assert!(arrived == apart, "{:?}", arrived.iter().map(Vec::len).collect::<Vec<_>>());
    // Linux 5.0 and later.
    assert_eq!(slots, 4, "four, none, one, and two");
}

#[test]
fn a_datagram_that_udp_cannot_carry_is_an_error_with_its_length() {
    let mut sender = sender(unicast().local_address());
    let long = vec![0; 65_508];
    for result in [sender.send(&long), sender.send_many([&long])] {
        let error = result.unwrap_err();
        assert!(
            error.to_string().starts_with("a datagram of 65508 bytes is too long for 127.0.0.1:"),
            "{error}"
        );
        assert!(error.hint().unwrap().contains("65507"));
    }
}

#[test]
fn the_buffer_that_the_kernel_gave_is_reported() {
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let modest =
        UdpReceiver::open(&ReceiveOptions { receive_buffer: 65_536, ..ReceiveOptions::new(address) })
            .unwrap();
    assert_eq!(
        (modest.receive_buffer().asked, modest.receive_buffer().got, modest.advice()),
        (65_536, 65_536, None)
    );
    let greedy =
        UdpReceiver::open(&ReceiveOptions { receive_buffer: 1 << 30, ..ReceiveOptions::new(address) })
            .unwrap();
    let size = greedy.receive_buffer();
    // A privileged process gets the requested size, another one what the system allows.
    match greedy.advice() {
        None => assert_eq!(size.got, size.asked),
        Some(advice) => {
            assert!(size.got < size.asked);
            assert!(advice.contains("`sysctl -w net.core.rmem_max=1073741823`"), "{advice}");
        }
    }
}

#[test]
fn errors_say_which_address_what_the_system_said_and_what_to_do() {
    let taken = unicast();
    let address = taken.local_address();
    let cases = [
        (
            on_loopback(address),
            format!("cannot bind to {address} on lo 127.0.0.1: Address already in use"),
            "`ss -tulpn` shows which",
        ),
        (
            ReceiveOptions::new("203.0.113.1:5000".parse().unwrap()),
            "cannot bind to 203.0.113.1:5000: Cannot assign requested address".to_owned(),
            "one of this machine's own",
        ),
        (
            ReceiveOptions { interface: "eth77".to_owned(), ..ReceiveOptions::new(group(5, 0)) },
            "no network interface has the name or address \"eth77\"; there are: lo 127.0.0.1".to_owned(),
            "`ip address` lists",
        ),
        (
            ReceiveOptions { source: Some(Ipv4Addr::LOCALHOST), ..on_loopback(address) },
            format!("a source can be given for a multicast group only, and {address} is not one"),
            "between 224.0.0.0 and 239.255.255.255",
        ),
    ];
    for (options, what, hint) in cases {
        let error = UdpReceiver::open(&options).unwrap_err();
        assert!(error.to_string().starts_with(&what), "{error}");
        assert!(error.hint().unwrap().contains(hint), "{:?}", error.hint());
    }
    let unreachable = SendOptions {
        interface: LOOPBACK.to_owned(),
        ..SendOptions::new("203.0.113.1:5000".parse().unwrap())
    };
    let error = UdpSender::open(&unreachable).unwrap_err();
    assert!(error.to_string().starts_with("cannot send to 203.0.113.1:5000 on lo 127.0.0.1: "), "{error}");
    // The system's error depends on whether this machine has a route to the Internet.
    assert!(error.hint().is_some(), "{error}");
}
