//! The table of open sessions.

use crate::connections::SessionId;
use crate::session::Session;

/// The open sessions by number. The number of a closed session is reused, the last first.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    places: Vec<Option<Session>>,
    free: Vec<SessionId>,
}

impl Sessions {
    /// Adds a session and returns its number.
    pub(crate) fn open(&mut self, session: Session) -> SessionId {
        if let Some(id) = self.free.pop() {
            self.places[id.index()] = Some(session);
            return id;
        }
        self.places.push(Some(session));
        // Lossless: there are fewer connections.
        SessionId((self.places.len() - 1) as u32)
    }

    pub(crate) fn close(&mut self, id: SessionId) -> Option<Session> {
        let session = self.places.get_mut(id.index())?.take()?;
        self.free.push(id);
        Some(session)
    }

    #[inline]
    pub(crate) fn get(&self, id: SessionId) -> Option<&Session> {
        self.places.get(id.index())?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.places.get_mut(id.index())?.as_mut()
    }

    /// Returns the sessions in order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SessionId, &Session)> {
        let numbered = self.places.iter().zip(0..);
        numbered.filter_map(|(session, number)| Some((SessionId(number), session.as_ref()?)))
    }

    /// Returns the sessions that are not over, in order of their numbers.
    pub(crate) fn live_mut(&mut self) -> impl Iterator<Item = (SessionId, &mut Session)> {
        self.numbers().zip(&mut self.places).filter_map(|(id, session)| Some((id, live(session.as_mut())?)))
    }

    /// Returns a session that is not over.
    #[inline]
    pub(crate) fn get_live(&mut self, id: SessionId) -> Option<&mut Session> {
        live(self.get_mut(id))
    }

    /// Returns the number of open sessions.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Returns all numbers that a session has or had, in order.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = SessionId> + use<> {
        (0..self.places.len() as u32).map(SessionId)
    }
}

#[inline]
fn live(session: Option<&mut Session>) -> Option<&mut Session> {
    session.filter(|session| session.session_state.over.is_none())
}
