//! The login (domain 1): who connects, and what both ends can do.

use super::elements::{Buffer, elements, encode_list};
use super::standby;
use crate::rwf::{
    Attributes, Container, DataType, Domain, Flags, Key, NameType, RefreshHeader, RequestHeader, flags,
};
use crate::{Malformed, Refused, State};

/// A name type: a user's name; what is meant if none is given.
pub const USER_NAME: NameType = NameType(1);
/// A name type: an e-mail address.
pub const USER_EMAIL: NameType = NameType(2);
/// A name type: a token.
pub const USER_TOKEN: NameType = NameType(3);
/// A name type: a cookie.
pub const USER_COOKIE: NameType = NameType(4);
/// A name type: the token is in the attributes; the name is one zero byte.
pub const USER_AUTHENTICATION_TOKEN: NameType = NameType(5);

/// A role: consumer.
pub const ROLE_CONSUMER: u64 = 0;
/// A role: non-interactive provider.
pub const ROLE_PROVIDER: u64 = 1;
/// A value of `RoundTripLatency`: wanted, or given.
pub const ROUND_TRIP_WANTED: u64 = 2;

/// A bit of `SupportBatchRequests`: batches of requests.
pub const BATCH_REQUESTS: u64 = 1;
/// A bit of `SupportBatchRequests`: batches of reissues.
pub const BATCH_REISSUES: u64 = 2;
/// A bit of `SupportBatchRequests`: batches of closes.
pub const BATCH_CLOSES: u64 = 4;

/// Bytes that the attributes of a key can have at most.
const MOST_ATTRIBUTES: usize = 0x7FFF;

elements! {
    /// What a login request says of who asks: the attributes of its key.
    LoginAttributes<'a> {
        /// A number as text.
        application_id "ApplicationId": &'a [u8],
        /// What the application calls itself.
        application_name "ApplicationName": &'a [u8],
        /// Where: the DACS position, an address and a network or host.
        position "Position": &'a [u8],
        /// Password.
        password "Password": &'a [u8],
        /// Whether permission profiles are wanted; 1 if absent.
        provide_permission_profile "ProvidePermissionProfile": u64,
        /// Whether permission expressions are wanted; 1 if absent.
        provide_permission_expressions "ProvidePermissionExpressions": u64,
        /// Whether the provider is to recover items; 1 if absent.
        single_open "SingleOpen": u64,
        /// Whether suspect data will do; 1 if absent.
        allow_suspect_data "AllowSuspectData": u64,
        /// Whether a non-interactive provider wants to download dictionaries; 0 if absent.
        support_provider_dictionary_download "SupportProviderDictionaryDownload": u64,
        /// The token of a user of type 5.
        authentication_token "AuthenticationToken": &'a [u8],
        /// More for whoever checks the token.
        authentication_extended "AuthenticationExtended": Buffer<'a>,
        /// Which of several alike.
        instance_id "InstanceId": &'a [u8],
        /// 0 consumer, 1 provider; 0 if absent.
        role "Role": u64,
        /// Whether a configuration is wanted; 0 if absent.
        download_connection_config "DownloadConnectionConfig": u64,
        /// 2 if round trips are to be measured.
        round_trip_latency "RoundTripLatency": u64,
        /// Update types that are wanted, bit n for type n.
        update_type_filter "UpdateTypeFilter": u64,
        /// Update types that are not wanted, bit n for type n.
        negative_update_type_filter "NegativeUpdateTypeFilter": u64,
    }

    /// What a login refresh says of what the provider can do: the attributes of its key.
    LoginFeatures<'a> {
        /// Whether suspect data is passed on; 1 if absent.
        allow_suspect_data "AllowSuspectData": u64,
        /// Of the request.
        application_id "ApplicationId": &'a [u8],
        /// What the provider calls itself.
        application_name "ApplicationName": &'a [u8],
        /// Of the request.
        position "Position": &'a [u8],
        /// Whether permission profiles are given; 1 if absent.
        provide_permission_profile "ProvidePermissionProfile": u64,
        /// Whether permission expressions are given; 1 if absent.
        provide_permission_expressions "ProvidePermissionExpressions": u64,
        /// Whether the provider recovers items; 1 if absent.
        single_open "SingleOpen": u64,
        /// When the token is to be renewed, seconds since 1970; never if absent.
        authentication_tt_reissue "AuthenticationTTReissue": u64,
        /// From whoever checked the token.
        authentication_extended_resp "AuthenticationExtendedResp": Buffer<'a>,
        /// What was wrong with the token.
        authentication_error_code "AuthenticationErrorCode": u64,
        /// What was wrong with the token, for people.
        authentication_error_text "AuthenticationErrorText": &'a [u8],
        /// Bits of what can be asked in batches; 0 if absent.
        support_batch_requests "SupportBatchRequests": u64,
        /// Whether it can be one of several servers of a warm standby; 0 if absent.
        support_standby "SupportStandby": u64,
        /// Bits of what a standby can be of: [`standby::BY_LOGIN`], [`standby::BY_SERVICE`]; both if absent.
        support_standby_mode "SupportStandbyMode": u64,
        /// Whether items can be paused one by one; 0 if absent.
        support_optimized_pause_resume "SupportOptimizedPauseResume": u64,
        /// Whether the login can be paused, and all items with it; 0 if absent.
        support_pause_resume "SupportPauseResume": u64,
        /// Whether posts are taken; 0 if absent.
        support_omm_post "SupportOMMPost": u64,
        /// Whether views are served; 0 if absent.
        support_view_requests "SupportViewRequests": u64,
        /// Whether a non-interactive provider can download dictionaries; 0 if absent.
        support_provider_dictionary_download "SupportProviderDictionaryDownload": u64,
        /// Whether symbol lists bring their items; 0 if absent.
        support_enhanced_symbol_list "SupportEnhancedSymbolList": u64,
        /// 2 if round trips are measured.
        round_trip_latency "RoundTripLatency": u64,
    }
}

impl LoginFeatures<'_> {
    /// Whether posts are taken.
    #[must_use]
    pub fn takes_posts(&self) -> bool {
        self.support_omm_post.unwrap_or(0) != 0
    }

    /// Whether views are served.
    #[must_use]
    pub fn serves_views(&self) -> bool {
        self.support_view_requests.unwrap_or(0) != 0
    }

    /// Whether this can be asked in batches: [`BATCH_REQUESTS`], [`BATCH_REISSUES`], [`BATCH_CLOSES`].
    #[must_use]
    pub fn batches(&self, what: u64) -> bool {
        self.support_batch_requests.unwrap_or(0) & what != 0
    }

    /// Bits of what a warm standby can be of, [`standby::BY_LOGIN`] and [`standby::BY_SERVICE`]; 0 for nothing.
    #[must_use]
    pub fn standby_modes(&self) -> u64 {
        match self.support_standby.unwrap_or(0) {
            0 => 0,
            // The vendor's library (ETA 3.9.1) takes one that does not say for one that has both.
            _ => self.support_standby_mode.unwrap_or(standby::BY_LOGIN | standby::BY_SERVICE),
        }
    }

    /// Whether items can be paused one by one.
    #[must_use]
    pub fn pauses_items(&self) -> bool {
        self.support_optimized_pause_resume.unwrap_or(0) != 0
    }
}

/// Key of a login: name and attributes.
fn key<'a>(user: &'a [u8], name_type: NameType, attributes: &'a [u8]) -> Key<'a> {
    let attributes = Attributes { container: DataType::ELEMENT_LIST, data: attributes };
    Key { name: Some(user), name_type: Some(name_type), attributes: Some(attributes), ..Key::default() }
}

/// A login request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginRequest<'a> {
    /// Stream that is opened.
    pub stream_id: i32,
    /// [`flags::request`]: STREAMING; PAUSE to hold back all items; NO_REFRESH for a renewed token.
    pub flags: Flags,
    /// Name of the user.
    pub user: &'a [u8],
    /// What kind of name.
    pub name_type: NameType,
    /// Who asks.
    pub attributes: LoginAttributes<'a>,
}

impl<'a> LoginRequest<'a> {
    /// A request of a consumer on [`LOGIN_STREAM`](super::LOGIN_STREAM).
    #[must_use]
    pub fn new(user: &'a [u8]) -> Self {
        Self {
            stream_id: super::LOGIN_STREAM,
            flags: flags::request::STREAMING,
            user,
            name_type: USER_NAME,
            attributes: LoginAttributes { role: Some(ROLE_CONSUMER), ..LoginAttributes::default() },
        }
    }

    /// From a request of the login domain.
    ///
    /// # Errors
    ///
    /// Attributes that are malformed; offsets count from their start.
    pub fn read(header: &RequestHeader<'a>) -> Result<Self, Malformed> {
        Ok(Self {
            stream_id: header.stream_id,
            flags: header.flags,
            user: header.key.name.unwrap_or_default(),
            name_type: header.key.name_type.unwrap_or(USER_NAME),
            attributes: match header.key.attributes.map(|attributes| attributes.open()).transpose()? {
                Some(Container::ElementList(list)) => LoginAttributes::read_elements(&list)?,
                _ => LoginAttributes::default(),
            },
        })
    }

    /// Writes the message to the front of `out`; returns its length. Allocates for the attributes.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`]; [`Refused::TooLong`] for attributes of more than 32,767 bytes together.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, Refused> {
        let mut attributes = vec![0; MOST_ATTRIBUTES];
        let len = attributes_in(&mut attributes, |list| self.attributes.write(list))?;
        let key = key(self.user, self.name_type, attributes.get(..len).unwrap_or_default());
        let header = RequestHeader::new(Domain::LOGIN, self.stream_id, key);
        RequestHeader { flags: self.flags, ..header }.encode(out)
    }
}

/// Attributes that have no room in their 32,767 bytes are too long, however large the message may be.
fn attributes_in(
    room: &mut [u8],
    write: impl FnOnce(&mut crate::rwf::ElementListEncoder<'_>) -> Result<(), Refused>,
) -> Result<usize, Refused> {
    encode_list(room, write).map_err(|refused| match refused {
        Refused::Full => Refused::TooLong { what: "login attributes", limit: MOST_ATTRIBUTES },
        other => other,
    })
}

/// A login refresh: the answer that lets somebody in, or a change of it later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginRefresh<'a> {
    /// Stream of the request.
    pub stream_id: i32,
    /// [`flags::refresh`]: a consumer of the vendor's library wants SOLICITED and REFRESH_COMPLETE.
    pub flags: Flags,
    /// Open and OK lets in.
    pub state: State<'a>,
    /// Name of the user.
    pub user: &'a [u8],
    /// What kind of name.
    pub name_type: NameType,
    /// What the provider can do.
    pub features: LoginFeatures<'a>,
}

impl<'a> LoginRefresh<'a> {
    /// The answer that accepts `request`.
    #[must_use]
    pub fn accepting(request: &LoginRequest<'a>, features: LoginFeatures<'a>) -> Self {
        Self {
            stream_id: request.stream_id,
            flags: flags::refresh::SOLICITED | flags::refresh::REFRESH_COMPLETE,
            state: State { text: b"Login accepted", ..State::OPEN_OK },
            user: request.user,
            name_type: request.name_type,
            features,
        }
    }

    /// From a refresh of the login domain.
    ///
    /// # Errors
    ///
    /// Attributes that are malformed; offsets count from their start.
    pub fn read(header: &RefreshHeader<'a>) -> Result<Self, Malformed> {
        let key = header.key.unwrap_or_default();
        Ok(Self {
            stream_id: header.stream_id,
            flags: header.flags,
            state: header.state,
            user: key.name.unwrap_or_default(),
            name_type: key.name_type.unwrap_or(USER_NAME),
            features: match key.attributes.map(|attributes| attributes.open()).transpose()? {
                Some(Container::ElementList(list)) => LoginFeatures::read_elements(&list)?,
                _ => LoginFeatures::default(),
            },
        })
    }

    /// Writes the message to the front of `out`; returns its length. Allocates for the attributes.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`]; [`Refused::TooLong`] for attributes of more than 32,767 bytes together.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, Refused> {
        let mut attributes = vec![0; MOST_ATTRIBUTES];
        let len = attributes_in(&mut attributes, |list| self.features.write(list))?;
        let key = key(self.user, self.name_type, attributes.get(..len).unwrap_or_default());
        let header = RefreshHeader::new(Domain::LOGIN, self.stream_id, self.state, DataType::NO_DATA);
        RefreshHeader { flags: self.flags, key: Some(key), ..header }.encode(out)
    }
}
