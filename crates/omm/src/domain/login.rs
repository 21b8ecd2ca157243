//! The login (domain 1): identity of the user, and features of both ends.

use super::elements::{Buffer, elements};
use super::standby;
use crate::rwf::{
    Container, DataType, Domain, ElementList, ElementListEncoder, Flags, Key, KeyElements, NameType,
    RefreshHeader, RequestHeader, flags,
};
use crate::{Malformed, Refused, State};

/// Name type: user name; the default.
pub const USER_NAME: NameType = NameType(1);
/// Name type: e-mail address.
pub const USER_EMAIL: NameType = NameType(2);
/// Name type: token.
pub const USER_TOKEN: NameType = NameType(3);
/// Name type: cookie.
pub const USER_COOKIE: NameType = NameType(4);
/// Name type: authentication token. The token is in the attributes; the name is one zero byte.
pub const USER_AUTHENTICATION_TOKEN: NameType = NameType(5);

/// Role: consumer.
pub const ROLE_CONSUMER: u64 = 0;
/// Role: non-interactive provider.
pub const ROLE_PROVIDER: u64 = 1;
/// Value of `RoundTripLatency`: requested, or supported.
pub const ROUND_TRIP_WANTED: u64 = 2;

/// Bit of `SupportBatchRequests`: batches of requests.
pub const BATCH_REQUESTS: u64 = 1;
/// Bit of `SupportBatchRequests`: batches of reissues.
pub const BATCH_REISSUES: u64 = 2;
/// Bit of `SupportBatchRequests`: batches of closes.
pub const BATCH_CLOSES: u64 = 4;

elements! {
    /// Attributes of a login request's key: data about the user and the application.
    LoginAttributes<'a> {
        /// Application id: a number as text.
        application_id "ApplicationId": &'a [u8],
        /// Name of the application.
        application_name "ApplicationName": &'a [u8],
        /// DACS position: an address and a network or host.
        position "Position": &'a [u8],
        /// Password.
        password "Password": &'a [u8],
        /// 1 if permission profiles are requested; default 1.
        provide_permission_profile "ProvidePermissionProfile": u64,
        /// 1 if permission expressions are requested; default 1.
        provide_permission_expressions "ProvidePermissionExpressions": u64,
        /// 1 if the provider is to recover items; default 1.
        single_open "SingleOpen": u64,
        /// 1 if suspect data is acceptable; default 1.
        allow_suspect_data "AllowSuspectData": u64,
        /// 1 if a non-interactive provider wants to download dictionaries; default 0.
        support_provider_dictionary_download "SupportProviderDictionaryDownload": u64,
        /// Token of a user of name type 5.
        authentication_token "AuthenticationToken": &'a [u8],
        /// Additional data for the authenticator of the token.
        authentication_extended "AuthenticationExtended": Buffer<'a>,
        /// Instance id among several identical applications.
        instance_id "InstanceId": &'a [u8],
        /// 0 consumer, 1 provider; default 0.
        role "Role": u64,
        /// 1 if a configuration is requested; default 0.
        download_connection_config "DownloadConnectionConfig": u64,
        /// 2 if round trips are to be measured.
        round_trip_latency "RoundTripLatency": u64,
        /// Requested update types, bit n for type n.
        update_type_filter "UpdateTypeFilter": u64,
        /// Excluded update types, bit n for type n.
        negative_update_type_filter "NegativeUpdateTypeFilter": u64,
    }

    /// Attributes of a login refresh's key: the features of the provider.
    LoginFeatures<'a> {
        /// 1 if suspect data is passed on; default 1.
        allow_suspect_data "AllowSuspectData": u64,
        /// Application id of the request.
        application_id "ApplicationId": &'a [u8],
        /// Name of the provider application.
        application_name "ApplicationName": &'a [u8],
        /// Position of the request.
        position "Position": &'a [u8],
        /// 1 if permission profiles are provided; default 1.
        provide_permission_profile "ProvidePermissionProfile": u64,
        /// 1 if permission expressions are provided; default 1.
        provide_permission_expressions "ProvidePermissionExpressions": u64,
        /// 1 if the provider recovers items; default 1.
        single_open "SingleOpen": u64,
        /// Time at which the token must be renewed, seconds since 1970; never if absent.
        authentication_tt_reissue "AuthenticationTTReissue": u64,
        /// Data from the authenticator of the token.
        authentication_extended_resp "AuthenticationExtendedResp": Buffer<'a>,
        /// Error code of the token's authentication.
        authentication_error_code "AuthenticationErrorCode": u64,
        /// Human-readable error of the token's authentication.
        authentication_error_text "AuthenticationErrorText": &'a [u8],
        /// Bits of the supported batches; default 0.
        support_batch_requests "SupportBatchRequests": u64,
        /// 1 if the provider can be a server of a warm standby; default 0.
        support_standby "SupportStandby": u64,
        /// Bits of the supported standby modes: [`standby::BY_LOGIN`], [`standby::BY_SERVICE`]; both if absent.
        support_standby_mode "SupportStandbyMode": u64,
        /// 1 if items can be paused individually; default 0.
        support_optimized_pause_resume "SupportOptimizedPauseResume": u64,
        /// 1 if the login can be paused, and all items with it; default 0.
        support_pause_resume "SupportPauseResume": u64,
        /// 1 if posts are accepted; default 0.
        support_omm_post "SupportOMMPost": u64,
        /// 1 if views are supported; default 0.
        support_view_requests "SupportViewRequests": u64,
        /// 1 if a non-interactive provider can download dictionaries; default 0.
        support_provider_dictionary_download "SupportProviderDictionaryDownload": u64,
        /// 1 if symbol lists deliver their items; default 0.
        support_enhanced_symbol_list "SupportEnhancedSymbolList": u64,
        /// 2 if round trips are measured.
        round_trip_latency "RoundTripLatency": u64,
    }
}

impl LoginFeatures<'_> {
    /// Returns `true` if posts are accepted.
    #[must_use]
    pub fn takes_posts(&self) -> bool {
        self.support_omm_post.unwrap_or(0) != 0
    }

    /// Returns `true` if views are supported.
    #[must_use]
    pub fn serves_views(&self) -> bool {
        self.support_view_requests.unwrap_or(0) != 0
    }

    /// Returns `true` if a kind of batch is supported: [`BATCH_REQUESTS`], [`BATCH_REISSUES`], [`BATCH_CLOSES`].
    #[must_use]
    pub fn batches(&self, what: u64) -> bool {
        self.support_batch_requests.unwrap_or(0) & what != 0
    }

    /// Returns the bits of the supported standby modes, [`standby::BY_LOGIN`] and [`standby::BY_SERVICE`]; 0 for none.
    #[must_use]
    pub fn standby_modes(&self) -> u64 {
        match self.support_standby.unwrap_or(0) {
            0 => 0,
            // The vendor's library (ETA 3.9.1) treats a provider that does not state its modes as one that has both.
            _ => self.support_standby_mode.unwrap_or(standby::BY_LOGIN | standby::BY_SERVICE),
        }
    }

    /// Returns `true` if items can be paused individually.
    #[must_use]
    pub fn pauses_items(&self) -> bool {
        self.support_optimized_pause_resume.unwrap_or(0) != 0
    }
}

/// Returns the list of a login's attributes; an empty one if the key has none.
fn attributes_of<'a>(key: &Key<'a>) -> Result<ElementList<'a>, Malformed> {
    match key.attributes.map(|attributes| attributes.open()).transpose()? {
        Some(Container::ElementList(list)) => Ok(list),
        _ => ElementList::parse(&[]),
    }
}

/// Encodes a message with the key of a login: a name, and the attributes that `write` appends.
fn encode_with_key(
    (user, name_type): (&[u8], NameType),
    write: impl FnOnce(&mut ElementListEncoder<'_>) -> Result<(), Refused>,
    encode: impl FnOnce(Key<'_>) -> Result<usize, Refused>,
) -> Result<usize, Refused> {
    let elements = KeyElements::encode("login attributes", write)?;
    let attributes = Some(elements.attributes());
    encode(Key { name: Some(user), name_type: Some(name_type), attributes, ..Key::default() })
}

/// A login request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginRequest<'a> {
    /// Stream to open.
    pub stream_id: i32,
    /// [`flags::request`]: STREAMING; PAUSE to pause all items; NO_REFRESH for a renewed token.
    pub flags: Flags,
    /// User name.
    pub user: &'a [u8],
    /// Name type.
    pub name_type: NameType,
    /// Data about the user and the application.
    pub attributes: LoginAttributes<'a>,
}

impl<'a> LoginRequest<'a> {
    /// Returns a request of a consumer on [`LOGIN_STREAM`](super::LOGIN_STREAM).
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

    /// Reads a request of the login domain.
    ///
    /// # Errors
    ///
    /// Fails if the attributes are malformed; offsets count from their start.
    pub fn read(header: &RequestHeader<'a>) -> Result<Self, Malformed> {
        Ok(Self {
            stream_id: header.stream_id,
            flags: header.flags,
            user: header.key.name.unwrap_or_default(),
            name_type: header.key.name_type.unwrap_or(USER_NAME),
            attributes: LoginAttributes::read_elements(&attributes_of(&header.key)?)?,
        })
    }

    /// Writes the message to the start of `out`; returns its length. Allocates memory for the attributes.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`]; [`Refused::TooLong`] for attributes of more than 32,767 bytes together.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, Refused> {
        encode_with_key(
            (self.user, self.name_type),
            |list| self.attributes.write(list),
            |key| {
                let header = RequestHeader::new(Domain::LOGIN, self.stream_id, key);
                RequestHeader { flags: self.flags, ..header }.encode(out)
            },
        )
    }
}

/// A login refresh: the answer that accepts a login, or a later change of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginRefresh<'a> {
    /// Stream of the request.
    pub stream_id: i32,
    /// [`flags::refresh`]: a consumer of the vendor's library requires SOLICITED and REFRESH_COMPLETE.
    pub flags: Flags,
    /// Open and OK accepts the login.
    pub state: State<'a>,
    /// User name.
    pub user: &'a [u8],
    /// Name type.
    pub name_type: NameType,
    /// Features of the provider.
    pub features: LoginFeatures<'a>,
}

impl<'a> LoginRefresh<'a> {
    /// Returns the answer that accepts `request`.
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

    /// Reads a refresh of the login domain.
    ///
    /// # Errors
    ///
    /// Fails if the attributes are malformed; offsets count from their start.
    pub fn read(header: &RefreshHeader<'a>) -> Result<Self, Malformed> {
        let key = header.key.unwrap_or_default();
        Ok(Self {
            stream_id: header.stream_id,
            flags: header.flags,
            state: header.state,
            user: key.name.unwrap_or_default(),
            name_type: key.name_type.unwrap_or(USER_NAME),
            features: LoginFeatures::read_elements(&attributes_of(&key)?)?,
        })
    }

    /// Writes the message to the start of `out`; returns its length. Allocates memory for the attributes.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`]; [`Refused::TooLong`] for attributes of more than 32,767 bytes together.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, Refused> {
        encode_with_key(
            (self.user, self.name_type),
            |list| self.features.write(list),
            |key| {
                let header = RefreshHeader::new(Domain::LOGIN, self.stream_id, self.state, DataType::NO_DATA);
                RefreshHeader { flags: self.flags, key: Some(key), ..header }.encode(out)
            },
        )
    }
}
