//! Answers to logins, immediately or after their check; and the user's access to items.

use tapeline_omm::domain::LoginRequest;
use tapeline_omm::domain::login::{self, LoginFeatures};
use tapeline_omm::domain::standby;
use tapeline_omm::role::Outbox;
use tapeline_omm::role::provider::{Provider, StreamHandle};
use tapeline_omm::rwf::{Header, MessageView, StateCode, flags};
use tapeline_plant::cache::ItemKey;

use crate::access::{Action, Admission, Decision, NOT_ENTITLED, OPEN, Outcome, Pending, Wanted, name_of};
use crate::event::{HubEvent, Who};
use crate::request_handler::RequestHandler;
use crate::session::{PendingReply, Refusal};
use crate::status_texts::NO_POSTS;

/// Maximum bytes of each login attribute that the answer repeats: legitimate ones are short.
const LONGEST_ATTRIBUTE: usize = 1024;
/// Maximum size of a login request without its credentials: its name and its description of the client.
const LONGEST_REQUEST: usize = 8 << 10;

impl RequestHandler<'_> {
    /// Handles a login or its renewal.
    pub(crate) fn login(
        &mut self,
        provider: &mut Provider,
        out: &mut dyn Outbox,
        request: &LoginRequest<'_>,
        is_reissue: bool,
    ) {
        let user = String::from_utf8_lossy(name_of(request)).into_owned();
        match self.shared.gate.ask(self.now, self.id, &self.session_state.pass, request, is_reissue) {
            Admission::Granted if is_reissue => self.renewed(provider, out, request),
            Admission::Granted => self.let_in(provider, out, request, Outcome { user, result: Ok(None) }),
            Admission::Refused(refusal) => self.keep_out(provider, out, request, user, refusal),
            Admission::Pending(number) => match kept(request) {
                Some(request) => {
                    self.session_state.pass.pending = Some(Pending { number, request, is_reissue });
                }
                None => {
                    self.shared.gate.withdraw(number);
                    self.keep_out(provider, out, request, user, TOO_LONG);
                }
            },
        }
    }

    /// Applies decisions made elsewhere: the result of a login's check, or changed rules.
    pub(crate) fn attend(&mut self, provider: &mut Provider, out: &mut dyn Outbox) {
        if let Some(outcome) = self.session_state.pass.outcome.take()
            && let Some(pending) = self.session_state.pass.pending.take()
            && let Ok(message) = MessageView::parse(&pending.request)
            && let Ok(Header::Request(header)) = message.header()
            && let Ok(request) = LoginRequest::read(&header)
        {
            match (&outcome.result, pending.is_reissue) {
                (&Err(refusal), _) => self.keep_out(provider, out, &request, outcome.user, refusal),
                (Ok(_), false) => self.let_in(provider, out, &request, outcome),
                // A token identifies its user, and a session belongs to one user to its end.
                (Ok(_), true) if outcome.user != self.session_state.user => {
                    self.keep_out(provider, out, &request, outcome.user, ANOTHER_USER);
                }
                (Ok(token), true) => {
                    if let Some(rights) = &mut self.session_state.pass.rights {
                        rights.token = *token;
                    }
                    self.renewed(provider, out, &request);
                }
            }
        }
        self.review(provider, out);
    }

    fn let_in(
        &mut self,
        provider: &mut Provider,
        out: &mut dyn Outbox,
        request: &LoginRequest<'_>,
        outcome: Outcome,
    ) {
        let Outcome { user, result } = outcome;
        let entered = result.and_then(|token| self.shared.gate.enter(self.id, &user, token));
        let rights = match entered {
            Ok(rights) => rights,
            Err(refusal) => return self.keep_out(provider, out, request, user, refusal),
        };
        self.session_state.user = user;
        self.session_state.pass.rights = Some(rights);
        // The semantics of LSEG's consumers: recovery by the provider implies suspect streams meanwhile.
        let attributes = &request.attributes;
        self.session_state.refuses_suspect =
            attributes.single_open == Some(0) && attributes.allow_suspect_data == Some(0);
        if !self.accept(provider, out, request) {
            return;
        }
        let user = self.session_state.user.clone();
        let who = Box::new(Who::of(request));
        self.shared.gate.counters.logins += 1;
        let (session, peer) = (self.id, self.session_state.pass.peer);
        self.notes.push_back(HubEvent::Login { session, peer, user, who });
    }

    fn keep_out(
        &mut self,
        provider: &mut Provider,
        out: &mut dyn Outbox,
        request: &LoginRequest<'_>,
        user: String,
        refusal: Refusal,
    ) {
        self.shared.gate.counters.refused += 1;
        let (session, peer, why) = (self.id, self.session_state.pass.peer, refusal.text);
        self.notes.push_back(HubEvent::Refused { session, peer, user, who: Box::new(Who::of(request)), why });
        let _ = provider.login_status(out, refusal.state());
    }

    fn accept(&self, provider: &mut Provider, out: &mut dyn Outbox, request: &LoginRequest<'_>) -> bool {
        let attributes = &request.attributes;
        let features = LoginFeatures {
            application_id: attributes.application_id,
            application_name: Some(b"tapeline"),
            position: attributes.position,
            // Items that a source loses are requested again while they are open.
            single_open: attributes.single_open.or(Some(1)),
            allow_suspect_data: attributes.allow_suspect_data.or(Some(1)),
            support_batch_requests: Some(login::BATCH_REQUESTS | login::BATCH_REISSUES | login::BATCH_CLOSES),
            support_omm_post: Some(self.shared.services.take_posts().into()),
            support_optimized_pause_resume: Some(1),
            support_pause_resume: Some(1),
            support_standby: Some(1),
            support_standby_mode: Some(standby::BY_LOGIN | standby::BY_SERVICE),
            support_view_requests: Some(1),
            round_trip_latency: attributes.round_trip_latency,
            ..LoginFeatures::default()
        };
        let is_sent = provider.accept_login(self.now, out, request, features).is_ok();
        if !is_sent {
            let _ = provider.login_status(out, TOO_LONG.state());
        }
        is_sent
    }

    fn renewed(&mut self, provider: &mut Provider, out: &mut dyn Outbox, request: &LoginRequest<'_>) {
        if !self.accept(provider, out, request) {
            return;
        }
        let is_paused = request.flags.has(flags::request::PAUSE);
        if std::mem::replace(&mut self.session_state.is_paused, is_paused) && !is_paused {
            for stream in self.shared.interest.streams_of(self.id) {
                self.owe_image(provider, stream, |open| open.missed);
            }
        }
    }

    /// Applies rules that changed since the session's login: closes items without access, and ends the session of a user without a login.
    fn review(&mut self, provider: &mut Provider, out: &mut dyn Outbox) {
        let Some(rights) = &self.session_state.pass.rights else { return };
        if self.shared.gate.is_current(&rights.access) {
            return;
        }
        match self.shared.gate.renew(&self.session_state.user, rights.token) {
            Ok(rights) => self.session_state.pass.rights = Some(rights),
            Err(refusal) => {
                self.session_state.pass.rights = None;
                self.shared.gate.forget(self.id, &self.session_state.user);
                let user = self.session_state.user.clone();
                let (session, peer, why) = (self.id, self.session_state.pass.peer, refusal.text);
                self.notes.push_back(HubEvent::Refused { session, peer, user, who: Box::default(), why });
                let _ = provider.login_status(out, refusal.state());
                return;
            }
        }
        for stream in self.shared.interest.streams_of(self.id) {
            if let Some(refusal) = self.refusal_of(stream) {
                self.take_away(provider, stream, refusal);
            }
        }
        for stream in self.shared.private.of(self.id) {
            if self.may_see_private(provider, stream) {
                continue;
            }
            self.shared.close_private(self.id, stream);
            self.session_state.owe(provider, stream, PendingReply::Closed(NOT_ENTITLED));
        }
    }

    /// Returns `true` if the client certainly has access to the item of a private stream: see [`refuses_for_certain`](Self::refuses_for_certain).
    fn may_see_private(&mut self, provider: &Provider, stream: StreamHandle) -> bool {
        let Some(named) = item_of(provider, stream) else { return !self.is_ruled() };
        let may = matches!(self.decide_by_name(&named), Some(Decision::Decided(Action::Allow { .. })));
        if !may {
            self.note_denied(&named, NOT_ENTITLED.text);
        }
        may
    }

    /// Closes a stream whose client has lost access to its item.
    pub(crate) fn take_away(&mut self, provider: &Provider, stream: StreamHandle, refusal: Refusal) {
        if let Some((item, _)) = self.shared.interest.of_stream(self.id, stream) {
            let (service, domain, name) = (item.service, item.domain, item.name.clone());
            self.note_denied(&ItemKey { service, domain, name: &name }, refusal.text);
        }
        self.shared.close(self.id, stream);
        self.session_state.owe(provider, stream, PendingReply::Closed(refusal));
    }

    /// Returns the reason to close a stream, by the present data of its item.
    pub(crate) fn refusal_of(&self, stream: StreamHandle) -> Option<Refusal> {
        let (item, _) = self.shared.interest.of_stream(self.id, stream)?;
        let decision = self.decide(&item.key(), item.permission())?;
        (decision == Decision::Decided(Action::Deny)).then_some(NOT_ENTITLED)
    }

    /// Returns the reason to send no image on a stream, if that depends on the codes in the image.
    pub(crate) fn denied_by_code(&self, stream: StreamHandle) -> Option<Refusal> {
        if self.shared.gate.uses_codes { self.refusal_of(stream) } else { None }
    }

    /// Returns the decision of the rules on an item; `None` for a session without a login.
    fn decide(&self, named: &ItemKey<'_>, permission: Option<&[u8]>) -> Option<Decision> {
        let rights = self.session_state.pass.rights.as_ref()?;
        if rights.access.is_open() {
            return Some(Decision::Decided(OPEN));
        }
        let ItemKey { service, domain, name } = *named;
        let service = self.shared.services.get(service).map_or("", |service| &service.name);
        let codes = rights.access.codes_of(service, name, permission);
        Some(rights.decide(&Wanted { service, domain, name, codes }))
    }

    /// Returns the decision of the rules on an item, by its known data.
    fn decide_by_name(&self, named: &ItemKey<'_>) -> Option<Decision> {
        let item = self.shared.interest.find(named).and_then(|place| self.shared.interest.get(place));
        self.decide(named, item.and_then(|item| item.permission()))
    }

    /// Returns the reason to refuse an item; `None` if it is permitted, or if the decision depends on its image.
    pub(crate) fn refuses(&mut self, named: &ItemKey<'_>) -> Option<Refusal> {
        let rights = self.session_state.pass.rights.as_ref()?;
        if let Some(most) = rights.max_streams {
            let sessions = self.shared.gate.sessions_of(&self.session_state.user);
            let mut open = 0;
            // Stops as early as possible: a user can have many sessions.
            let are_too_many = sessions.iter().any(|session| {
                open += self.shared.interest.open_streams(*session);
                open += self.shared.private.open_streams(*session);
                open >= most
            });
            if are_too_many {
                return Some(self.denied(named, TOO_MANY_STREAMS));
            }
        }
        let is_denied = self.is_ruled() && self.decide_by_name(named)? == Decision::Decided(Action::Deny);
        is_denied.then(|| self.denied(named, NOT_ENTITLED))
    }

    /// As [`refuses`](Self::refuses), for a private stream, whose later data is not examined here: the decision has to be certain.
    pub(crate) fn refuses_for_certain(&mut self, named: &ItemKey<'_>) -> Option<Refusal> {
        if let Some(refusal) = self.refuses(named) {
            return Some(refusal);
        }
        let is_uncertain = self.decide_by_name(named)? == Decision::Depends;
        is_uncertain.then(|| self.denied(named, NOT_ENTITLED))
    }

    /// Returns `true` if rules apply to this client.
    pub(crate) fn is_ruled(&self) -> bool {
        self.session_state.pass.rights.as_ref().is_none_or(|rights| !rights.access.is_open())
    }

    /// Returns `true` if this client may post to an item.
    pub(crate) fn may_post(&mut self, named: &ItemKey<'_>) -> bool {
        // Rules are about items: the target of a post without an item name is unknown here.
        let is_named = !named.name.is_empty() || !self.is_ruled();
        let decision = self.decide_by_name(named);
        let may = is_named && matches!(decision, Some(Decision::Decided(Action::Allow { post: true })));
        if !may {
            self.note_denied(named, NO_POSTS);
        }
        may
    }

    /// Records an item that is denied with a refusal.
    fn denied(&mut self, named: &ItemKey<'_>, refusal: Refusal) -> Refusal {
        self.note_denied(named, refusal.text);
        refusal
    }

    fn note_denied(&mut self, named: &ItemKey<'_>, why: &'static str) {
        self.shared.gate.counters.denied += 1;
        // A client that repeats denied requests must not displace the events of logins and ends.
        if self.notes.len() >= MOST_DENIALS {
            self.shared.gate.counters.denied_unsaid += 1;
            return;
        }
        let service = self.shared.services.get(named.service);
        self.notes.push_back(HubEvent::Denied {
            session: self.id,
            peer: self.session_state.pass.peer,
            user: self.session_state.user.clone(),
            service: service.map_or_else(String::new, |service| service.name.clone()),
            domain: named.domain,
            name: String::from_utf8_lossy(named.name).into_owned(),
            why,
        });
    }
}

/// Returns the item of a stream's request.
pub(crate) fn item_of(provider: &Provider, stream: StreamHandle) -> Option<ItemKey<'_>> {
    let (domain, key) = (provider.domain(stream)?, provider.key(stream)?);
    Some(ItemKey { service: key.service_id?, domain, name: key.name.unwrap_or_default() })
}

/// Number of queued events above which a denial is not recorded.
pub(crate) const MOST_DENIALS: usize = 5_000;

/// Returns a login request without its credentials; `None` if it is too long.
fn kept(request: &LoginRequest<'_>) -> Option<Vec<u8>> {
    let mut request = request.clone();
    let attributes = &mut request.attributes;
    (attributes.password, attributes.authentication_token) = (None, None);
    attributes.authentication_extended = None;
    if request.name_type == login::USER_TOKEN {
        request.user = b"";
    }
    let said =
        [attributes.application_id, attributes.application_name, attributes.position, attributes.instance_id];
    if said.into_iter().flatten().any(|said| said.len() > LONGEST_ATTRIBUTE) {
        return None;
    }
    let mut bytes = vec![0; LONGEST_REQUEST];
    let len = request.encode(&mut bytes).ok()?;
    bytes.truncate(len);
    bytes.shrink_to_fit();
    Some(bytes)
}

const TOO_LONG: Refusal =
    Refusal::closed(StateCode::USAGE_ERROR, "The attributes of this login are too long to be answered");
const ANOTHER_USER: Refusal =
    Refusal::closed(StateCode::USAGE_ERROR, "The token of another user cannot renew this login");
pub(crate) const TOO_MANY_STREAMS: Refusal =
    Refusal::closed(StateCode::TOO_MANY_ITEMS, "This user has as many items open as may be");
