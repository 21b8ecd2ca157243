//! One connection of a warm standby.

use tapeline_omm::domain::LoginRequest;
use tapeline_omm::domain::standby::{BY_LOGIN, BY_SERVICE, ConnectionStatus, ServerType};
use tapeline_omm::role::consumer::ConsumerSettings;
use tapeline_omm::rwf::MessageView;

use super::desk::Desk;

#[test]
fn a_provider_is_told_what_it_is_if_it_offers_that() {
    let statuses = [
        ConnectionStatus::Login(ServerType::Standby),
        ConnectionStatus::Services(vec![(1, ServerType::Standby)]),
    ];
    let both = BY_LOGIN | BY_SERVICE;
    let offers = [
        (&[][..], 0),
        (&[("SupportStandby", 0), ("SupportStandbyMode", both)], 0),
        (&[("SupportStandby", 1)], both),
        (&[("SupportStandby", 1), ("SupportStandbyMode", BY_LOGIN)], BY_LOGIN),
        (&[("SupportStandby", 1), ("SupportStandbyMode", BY_SERVICE)], BY_SERVICE),
    ];
    for (features, offered) in offers {
        let mut desk = Desk::new(ConsumerSettings::default(), &LoginRequest::new(b"user"));
        desk.connect();
        let early = statuses.each_ref().map(|status| desk.consumer.tell_standing(status, &mut desk.out));
        assert_eq!(early, [false, false], "there is no login yet");
        desk.log_in(features);
        desk.directory(&[(1, "FEED")]);
        desk.sent();
        assert_eq!(desk.consumer.standby_modes(), offered);
        for (status, mode) in statuses.iter().zip([BY_LOGIN, BY_SERVICE]) {
            let is_told = desk.consumer.tell_standing(status, &mut desk.out);
            assert_eq!(is_told, offered & mode != 0);
            let sent = desk
                .out
                .pop()
                .map(|bytes| ConnectionStatus::read(&MessageView::parse(&bytes).unwrap()).unwrap().unwrap());
            assert_eq!(sent.as_ref(), is_told.then_some(status));
        }
        // Another connection offers what its own login says.
        desk.lose_connection();
        assert_eq!(desk.consumer.standby_modes(), 0);
    }
}
