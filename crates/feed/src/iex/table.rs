//! The messages of TOPS 1.6 and DEEP 1.0: letters, lengths and fields. Sources: their specifications, message formats.

/// Passes the table to `declare`, after its own arguments: see [`wire`](crate::wire).
macro_rules! iex_messages {
    ($declare:ident $of:tt) => {
        $declare! { $of
            /// `S`: start or end of messages, system hours or regular hours.
            SystemEvent [SystemEvent b'S' "system event"] 10 {
                /// `O` and `C` start and end of messages, `S` and `E` of system hours, `R` and `M` of regular hours.
                event: Code = 1,
            }
            /// `D`: a security and its properties.
            SecurityDirectory [SecurityDirectory b'D' "security directory"] 31 {
                /// 0x80 test security, 0x40 when issued, 0x20 exchange-traded product.
                flags: u8 = 1,
                /// Symbol.
                symbol: Symbol = 10,
                /// Shares in a round lot.
                round_lot: u32 = 18,
                /// Previous official close, adjusted for corporate actions.
                previous_close: IexPrice = 22,
                /// Tier of limit up, limit down: 0 not applicable, 1 or 2.
                luld_tier: u8 = 30,
            }
            /// `H`: a security is halted, paused, accepts orders, or trades.
            TradingStatus [TradingStatus b'H' "trading status"] 22 {
                /// `H` halted, `O` accepts orders, `P` paused and accepts orders, `T` trades.
                status: Code = 1,
                /// Symbol.
                symbol: Symbol = 10,
                /// Reason code.
                reason: ItchText<4> = 18,
            }
            /// `O`: an operational halt of a security by IEX alone, or its end.
            OperationalHalt [OperationalHalt b'O' "operational halt status"] 18 {
                /// `O` halted on IEX, `N` not.
                status: Code = 1,
                /// Symbol.
                symbol: Symbol = 10,
            }
            /// `P`: short-sale price test.
            ShortSale [ShortSale b'P' "short-sale price test"] 19 {
                /// 1 if the test is in effect, 0 if not.
                in_effect: u8 = 1,
                /// Symbol.
                symbol: Symbol = 10,
                /// Space none, `A` activated, `C` continued, `D` deactivated, `N` not available.
                detail: Code = 18,
            }
            /// `Q`: best bid and ask (TOPS).
            QuoteUpdate [QuoteUpdate b'Q' "quote update"] 42 {
                /// 0x80 if the security is not available, 0x40 outside regular hours.
                flags: u8 = 1,
                /// Symbol.
                symbol: Symbol = 10,
                /// Shares at the best bid; 0 without a bid.
                bid_size: u32 = 18,
                /// Best bid.
                bid: IexPrice = 22,
                /// Best ask.
                ask: IexPrice = 30,
                /// Shares at the best ask; 0 without an ask.
                ask_size: u32 = 38,
            }
            /// `8` (buy side), `5` (sell side): the size now displayed at a price, 0 if the level is gone (DEEP).
            PriceLevel [BuyLevel b'8' "price level update, buy", SellLevel b'5' "price level update, sell"] 30 {
                /// Bit 0 is set if the event is complete with this message.
                flags: u8 = 1,
                /// Symbol.
                symbol: Symbol = 10,
                /// All shares displayed at the price.
                size: u32 = 18,
                /// The price.
                price: IexPrice = 22,
            }
            /// `T`: a trade.
            TradeReport [TradeReport b'T' "trade report"] 38 {
                /// Sale conditions: 0x80 intermarket sweep, 0x40 extended hours, 0x20 odd lot, 0x10 trade-through exempt, 0x08 single-price cross. All
                /// count as volume; with 0x40 or 0x20 a trade is no last sale in the sense of the consolidated tape.
                flags: u8 = 1,
                /// Symbol.
                symbol: Symbol = 10,
                /// Shares.
                size: u32 = 18,
                /// Price.
                price: IexPrice = 22,
                /// IEX's number of the trade, unique for the day.
                trade: u64 = 30,
            }
            /// `X`: official opening or closing price.
            OfficialPrice [OfficialPrice b'X' "official price"] 26 {
                /// `Q` opening, `M` closing.
                kind: Code = 1,
                /// Symbol.
                symbol: Symbol = 10,
                /// The price.
                price: IexPrice = 18,
            }
            /// `B`: a trade was broken.
            TradeBreak [TradeBreak b'B' "trade break"] 38 {
                /// Sale conditions of the trade.
                flags: u8 = 1,
                /// Symbol.
                symbol: Symbol = 10,
                /// Shares of the trade.
                size: u32 = 18,
                /// Price of the trade.
                price: IexPrice = 22,
                /// The trade's number.
                trade: u64 = 30,
            }
            /// `A`: state of an auction before it takes place.
            AuctionInformation [AuctionInformation b'A' "auction information"] 80 {
                /// `O` opening, `C` closing, `I` new issue, `H` after a halt, `V` after volatility.
                kind: Code = 1,
                /// Symbol.
                symbol: Symbol = 10,
                /// Shares that would match.
                paired: u32 = 18,
                /// Reference price.
                reference: IexPrice = 22,
                /// Price at which the auction would clear.
                indicative: IexPrice = 30,
                /// Shares that would not match.
                imbalance: u32 = 38,
                /// Side of the shares that would not match: `B`, `S`, or `N` for none.
                side: Code = 42,
                /// Number of extensions of the auction.
                extensions: u8 = 43,
                /// Time of the auction, seconds since 1970 in UTC.
                scheduled_s: u32 = 44,
                /// Price at which the orders for the auction alone would clear.
                book_clearing: IexPrice = 48,
                /// Reference of the collars.
                collar: IexPrice = 56,
                /// Lower collar.
                lower: IexPrice = 64,
                /// Upper collar.
                upper: IexPrice = 72,
            }
            /// `E`: opening or closing process of a security is complete (DEEP).
            SecurityEvent [SecurityEvent b'E' "security event"] 18 {
                /// `O` opening, `C` closing.
                event: Code = 1,
                /// Symbol.
                symbol: Symbol = 10,
            }
            /// `I`: interest of retail orders; not in the first editions.
            RetailLiquidity [RetailLiquidity b'I' "retail liquidity indicator"] 18 {
                /// Space none, `A` buy, `B` sell, `C` both.
                indicator: Code = 1,
                /// Symbol.
                symbol: Symbol = 10,
            }
        }
    };
}
pub(super) use iex_messages;
