//! The messages of ITCH 5.0: letters, lengths and fields. Source: NASDAQ TotalView-ITCH 5.0, sections 1.1–1.7.

/// Passes the table to `declare`, after its own arguments: see [`wire`](crate::wire).
macro_rules! itch_messages {
    ($declare:ident $of:tt) => {
        $declare! { $of
            /// `S`: start or end of messages, system hours or market hours.
            SystemEvent [SystemEvent b'S' "system event"] 12 {
                /// `O` and `C` start and end of messages, `S` and `E` of system hours, `Q` and `M` of market hours.
                event: Code = 11,
            }
            /// `R`: a stock and its properties, before trading starts.
            StockDirectory [StockDirectory b'R' "stock directory"] 39 {
                /// Symbol.
                stock: Symbol = 11,
                /// `Q`, `G`, `S` NASDAQ's tiers, `N` NYSE, `A` NYSE American, `P` Arca, `Z` Bats, `V` IEX, or space.
                market_category: Code = 19,
                /// `N` normal; `D`, `E`, `Q`, `S`, `G`, `H`, `J`, `K`, `C`, or space.
                financial_status: Code = 20,
                /// Shares in a round lot.
                round_lot: u32 = 21,
                /// `Y` if only round lots are accepted.
                round_lots_only: Code = 25,
                /// Kind of security.
                issue_classification: Code = 26,
                /// Finer kind of security.
                issue_sub_type: ItchText<2> = 27,
                /// `P` live, `T` test.
                authenticity: Code = 29,
                /// `Y`, `N` or space.
                short_sale_threshold: Code = 30,
                /// `Y`, `N` or space.
                ipo_flag: Code = 31,
                /// `1`, `2` or space.
                luld_tier: Code = 32,
                /// `Y` for an exchange-traded product.
                etp_flag: Code = 33,
                /// Leverage of an exchange-traded product.
                etp_leverage: u32 = 34,
                /// `Y` for an inverse product.
                inverse: Code = 38,
            }
            /// `H`: a stock is halted, paused, quoted only, or trading.
            TradingAction [TradingAction b'H' "stock trading action"] 25 {
                /// Symbol.
                stock: Symbol = 11,
                /// `H` halted, `P` paused, `Q` quotation only, `T` trading.
                state: Code = 19,
                /// Reserved.
                reserved: Code = 20,
                /// Reason code.
                reason: ItchText<4> = 21,
            }
            /// `Y`: short-sale restriction.
            RegSho [RegSho b'Y' "Reg SHO restriction"] 20 {
                /// Symbol.
                stock: Symbol = 11,
                /// `0` none, `1` after an intraday drop, `2` still in force.
                action: Code = 19,
            }
            /// `L`: the state of a market participant in a stock.
            ParticipantPosition [ParticipantPosition b'L' "market participant position"] 26 {
                /// Participant.
                mpid: Mpid = 11,
                /// Symbol.
                stock: Symbol = 15,
                /// `Y` for a primary market maker.
                primary: Code = 23,
                /// `N` normal, `P` passive, `S` syndicate, `R` pre-syndicate, `L` penalty.
                mode: Code = 24,
                /// `A` active, `E` excused, `W` withdrawn, `S` suspended, `D` deleted.
                state: Code = 25,
            }
            /// `V`: levels of the market-wide circuit breaker.
            BreakerLevels [BreakerLevels b'V' "circuit breaker levels"] 35 {
                /// Level 1.
                level_1: Price8 = 11,
                /// Level 2.
                level_2: Price8 = 19,
                /// Level 3.
                level_3: Price8 = 27,
            }
            /// `W`: a level of the market-wide circuit breaker was breached.
            BreakerStatus [BreakerStatus b'W' "circuit breaker status"] 12 {
                /// `1`, `2` or `3`.
                level: Code = 11,
            }
            /// `K`: start of quoting of a new issue.
            IpoQuoting [IpoQuoting b'K' "IPO quoting period"] 28 {
                /// Symbol.
                stock: Symbol = 11,
                /// Seconds since midnight.
                release_s: u32 = 19,
                /// `A` anticipated, `C` cancelled or postponed.
                qualifier: Code = 23,
                /// Price of the issue.
                price: Price4 = 24,
            }
            /// `J`: price collars of a limit-up limit-down auction.
            AuctionCollar [AuctionCollar b'J' "LULD auction collar"] 35 {
                /// Symbol.
                stock: Symbol = 11,
                /// Reference price.
                reference_price: Price4 = 19,
                /// Upper collar.
                upper: Price4 = 23,
                /// Lower collar.
                lower: Price4 = 27,
                /// Number of extensions of the auction.
                extension: u32 = 31,
            }
            /// `h`: a market's interruption of service for a stock.
            OperationalHalt [OperationalHalt b'h' "operational halt"] 21 {
                /// Symbol.
                stock: Symbol = 11,
                /// `Q` NASDAQ, `B` BX, `X` PSX.
                market: Code = 19,
                /// `H` halted, `T` resumed.
                action: Code = 20,
            }
            /// `A`: a new order on the book, no attribution.
            AddOrder [AddOrder b'A' "add order"] 36 {
                /// The new order.
                reference: OrderRef = 11,
                /// `B` or `S`.
                side: Code = 19,
                /// Shares.
                shares: u32 = 20,
                /// Symbol.
                stock: Symbol = 24,
                /// Limit price.
                price: Price4 = 32,
            }
            /// `F`: a new order on the book with its participant.
            AddOrderAttributed [AddOrderAttributed b'F' "add order with attribution"] 40 {
                /// The new order.
                reference: OrderRef = 11,
                /// `B` or `S`.
                side: Code = 19,
                /// Shares.
                shares: u32 = 20,
                /// Symbol.
                stock: Symbol = 24,
                /// Limit price.
                price: Price4 = 32,
                /// Participant.
                attribution: Mpid = 36,
            }
            /// `E`: shares of a resting order were executed at its price.
            OrderExecuted [OrderExecuted b'E' "order executed"] 31 {
                /// The resting order.
                reference: OrderRef = 11,
                /// Executed shares.
                shares: u32 = 19,
                /// The execution.
                match_number: MatchNumber = 23,
            }
            /// `C`: shares of a resting order were executed at another price.
            OrderExecutedWithPrice [OrderExecutedWithPrice b'C' "order executed with price"] 36 {
                /// The resting order.
                reference: OrderRef = 11,
                /// Executed shares.
                shares: u32 = 19,
                /// The execution.
                match_number: MatchNumber = 23,
                /// `Y`, or `N` if it must not count as volume: a later bulk print includes it.
                printable: Code = 31,
                /// Execution price.
                price: Price4 = 32,
            }
            /// `X`: some shares of a resting order were cancelled.
            OrderCancel [OrderCancel b'X' "order cancel"] 23 {
                /// The resting order.
                reference: OrderRef = 11,
                /// Cancelled shares.
                shares: u32 = 19,
            }
            /// `D`: an order left the book.
            OrderDelete [OrderDelete b'D' "order delete"] 19 {
                /// The order.
                reference: OrderRef = 11,
            }
            /// `U`: an order was replaced by a new one of the same side and stock.
            OrderReplace [OrderReplace b'U' "order replace"] 35 {
                /// The old order.
                reference: OrderRef = 11,
                /// The new order, last in time priority.
                new_reference: OrderRef = 19,
                /// Shares of the new order.
                shares: u32 = 27,
                /// Limit price of the new order.
                price: Price4 = 31,
            }
            /// `P`: a trade against an order that was not displayed.
            Trade [Trade b'P' "trade"] 44 {
                /// Always 0 today.
                reference: OrderRef = 11,
                /// Always `B` today, without meaning.
                side: Code = 19,
                /// Shares.
                shares: u32 = 20,
                /// Symbol.
                stock: Symbol = 24,
                /// Price.
                price: Price4 = 32,
                /// The execution.
                match_number: MatchNumber = 36,
            }
            /// `Q`: the bulk print of an auction.
            CrossTrade [CrossTrade b'Q' "cross trade"] 40 {
                /// Shares; may be 0.
                shares: u64 = 11,
                /// Symbol.
                stock: Symbol = 19,
                /// Price of all shares.
                price: Price4 = 27,
                /// The execution.
                match_number: MatchNumber = 31,
                /// `O` opening, `C` closing, `H` after a halt or of a new issue.
                cross: Code = 39,
            }
            /// `B`: a trade was broken.
            BrokenTrade [BrokenTrade b'B' "broken trade"] 19 {
                /// The execution that no longer counts.
                match_number: MatchNumber = 11,
            }
            /// `I`: state of an auction before it takes place.
            NetOrderImbalance [NetOrderImbalance b'I' "net order imbalance"] 50 {
                /// Shares that would match at the reference price.
                paired: u64 = 11,
                /// Shares that would not match.
                imbalance: u64 = 19,
                /// `B` buy, `S` sell, `N` none, `O` too few orders to determine the side.
                direction: Code = 27,
                /// Symbol.
                stock: Symbol = 28,
                /// Price at which the auction's own orders would clear.
                far: Price4 = 36,
                /// Price at which all orders would clear.
                near: Price4 = 40,
                /// Price at which paired and imbalance shares are counted.
                reference_price: Price4 = 44,
                /// `O` opening, `C` closing, `H` after a halt or of a new issue.
                cross: Code = 48,
                /// Distance of the near price from the reference price: `L`, `1` to `9`, `A` to `C`, or space.
                variation: Code = 49,
            }
            /// `N`: interest of the retail price improvement programme.
            RetailInterest [RetailInterest b'N' "retail interest"] 20 {
                /// Symbol.
                stock: Symbol = 11,
                /// `B` buy, `S` sell, `A` both, `N` none.
                interest: Code = 19,
            }
            /// `O`: a direct listing with a capital raise; not in the document of 2018.
            DirectListing [DirectListing b'O' "direct listing"] 48 {
                /// Symbol.
                stock: Symbol = 11,
                /// `Y` if the stock may open.
                eligible: Code = 19,
                /// Lowest price.
                min_price: Price4 = 20,
                /// Highest price.
                max_price: Price4 = 24,
                /// Near execution price.
                near_price: Price4 = 28,
                /// Near execution time, ns since midnight.
                near_time: u64 = 32,
                /// Lower collar.
                lower: Price4 = 40,
                /// Upper collar.
                upper: Price4 = 44,
            }
        }
    };
}
pub(super) use itch_messages;
