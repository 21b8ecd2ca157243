//! A request for an item.

use tapeline_omm::domain::{List, View};
use tapeline_omm::role::consumer::{ItemRequest, Reissue, ServiceName};
use tapeline_omm::rwf::{Attributes, Domain, KeyElements, Priority};
use tapeline_omm::{Fid, Qos};

/// A request for an item, or for several that differ only in their names.
///
/// [`Self::new`] requests a stream of MarketPrice messages, real time and tick by tick, of all fields. Each method changes one of these.
///
/// ```
/// use tapeline_client::Request;
/// use tapeline_omm::{fid, rwf::Domain};
///
/// let prices = Request::new("TAPELINE", "IBM.N").view(&[fid::BID, fid::ASK]);
/// let book = Request::new("TAPELINE", "IBM.N").domain(Domain::MARKET_BY_ORDER).snapshot();
/// ```
#[derive(Clone, Debug)]
pub struct Request<'a> {
    item: ItemRequest<'a>,
    service: &'a str,
    view: Option<Vec<i16>>,
    attributes: Option<&'a KeyElements>,
    is_paused: bool,
    wants_image: bool,
}

impl<'a> Request<'a> {
    /// Returns a request for the prices of an item of a service.
    #[must_use]
    pub const fn new(service: &'a str, name: &'a str) -> Self {
        let item = ItemRequest::new(ServiceName::Name(service), name.as_bytes());
        Self { item, service, view: None, attributes: None, is_paused: false, wants_image: true }
    }

    /// Requests another domain, such as MarketByOrder or SymbolList; any number is possible.
    #[must_use]
    pub const fn domain(mut self, domain: Domain) -> Self {
        self.item.domain = domain;
        self
    }

    /// Requests one image only: the item is closed after it.
    #[must_use]
    pub const fn snapshot(mut self) -> Self {
        self.item.is_streaming = false;
        self
    }

    /// Requests a private stream, whose content is for this consumer only. It is not requested again when it is lost.
    #[must_use]
    pub const fn private(mut self) -> Self {
        self.item.is_private = true;
        self
    }

    /// Requests these fields only. A provider without views sends all fields.
    #[must_use]
    pub fn view(mut self, fids: &[Fid]) -> Self {
        self.view = Some(fids.iter().map(|fid| fid.0).collect());
        self
    }

    /// Sets the priority: class and count; the default is 1 and 1.
    #[must_use]
    pub const fn priority(mut self, class: u8, count: u16) -> Self {
        self.item.priority = Priority { class, count };
        self
    }

    /// Sets the quality of service; `worst` is the worst that is acceptable too. The default is real time and tick by tick.
    #[must_use]
    pub const fn qos(mut self, best: Qos, worst: Option<Qos>) -> Self {
        (self.item.qos, self.item.worst_qos) = (Some(best), worst);
        self
    }

    /// Adds attributes to the key of the item.
    #[must_use]
    pub const fn attributes(mut self, attributes: &'a KeyElements) -> Self {
        self.attributes = Some(attributes);
        self
    }

    /// Sets the form in which a symbol list delivers its items: see [`symbol_list`](tapeline_omm::domain::symbol_list).
    #[must_use]
    pub const fn data_streams(mut self, form: u64) -> Self {
        self.item.data_streams = Some(form);
        self
    }

    /// Pauses the updates of an open item; for [`Consumer::reissue`](crate::Consumer::reissue).
    #[must_use]
    pub const fn paused(mut self) -> Self {
        self.is_paused = true;
        self
    }

    /// Requests no new image; for [`Consumer::reissue`](crate::Consumer::reissue).
    #[must_use]
    pub const fn without_image(mut self) -> Self {
        self.wants_image = false;
        self
    }

    /// Returns the name of the service.
    pub(crate) const fn service(&self) -> &'a str {
        self.service
    }

    /// Returns the name of the item.
    pub(crate) const fn name(&self) -> &'a [u8] {
        self.item.name
    }

    /// Returns the request for the role.
    pub(crate) fn of_item(&self, closure: u64) -> ItemRequest<'_> {
        let attributes = self.attributes.map(|attributes| -> Attributes<'_> { attributes.attributes() });
        ItemRequest { view: self.fids(), attributes, closure, ..self.item }
    }

    /// Returns the changes of an open item for the role.
    pub(crate) fn of_reissue(&self) -> Reissue<'_> {
        Reissue {
            priority: Some(self.item.priority),
            view: Some(self.fids()),
            is_paused: Some(self.is_paused),
            wants_image: self.wants_image,
        }
    }

    fn fids(&self) -> Option<View<'_>> {
        self.view.as_deref().map(|fids| View::Fids(List::Given(fids)))
    }
}
