//! The views of an instrument's definition, which has another layout in each version of the format.

use std::mem::{offset_of, size_of};

use ::dbn::{v1, v2, v3};

use super::field::{DbnPrice, DbnText, Field, Letter, Value};
use super::record::{HEADER_BYTES, Header, TS_OUT_BYTES, records};
use crate::wire::chunk;

records! {
    /// A definition of an instrument, version 1.
    DefinitionV1: v1::InstrumentDefMsg {
        ts_recv: u64, min_price_increment: DbnPrice, display_factor: DbnPrice, expiration: u64, activation: u64,
        high_limit_price: DbnPrice, low_limit_price: DbnPrice, max_price_variation: DbnPrice, trading_reference_price: DbnPrice,
        unit_of_measure_qty: i64, min_price_increment_amount: DbnPrice, price_ratio: DbnPrice, inst_attrib_value: i32,
        underlying_id: u32, raw_instrument_id: u32, market_depth_implied: i32, market_depth: i32,
        market_segment_id: u32, max_trade_vol: u32, min_lot_size: i32, min_lot_size_block: i32,
        min_lot_size_round_lot: i32, min_trade_vol: u32, contract_multiplier: i32, decay_quantity: i32,
        original_contract_size: i32, trading_reference_date: u16, appl_id: i16, maturity_year: u16,
        decay_start_date: u16, channel_id: u16, currency: DbnText<4>, settl_currency: DbnText<4>, secsubtype: DbnText<6>,
        raw_symbol: DbnText<22>, group: DbnText<21>, exchange: DbnText<5>, asset: DbnText<7>, cfi: DbnText<7>, security_type: DbnText<7>,
        unit_of_measure: DbnText<31>, underlying: DbnText<21>, strike_price_currency: DbnText<4>, instrument_class: Letter,
        strike_price: DbnPrice, match_algorithm: Letter, md_security_trading_status: u8, main_fraction: u8,
        price_display_format: u8, settl_price_type: u8, sub_fraction: u8, underlying_product: u8,
        security_update_action: Letter, maturity_month: u8, maturity_day: u8, maturity_week: u8,
        user_defined_instrument: Letter, contract_multiplier_unit: i8, flow_schedule_type: i8, tick_rule: u8,
    }
    /// A definition of an instrument, version 2.
    DefinitionV2: v2::InstrumentDefMsg {
        ts_recv: u64, min_price_increment: DbnPrice, display_factor: DbnPrice, expiration: u64, activation: u64,
        high_limit_price: DbnPrice, low_limit_price: DbnPrice, max_price_variation: DbnPrice, trading_reference_price: DbnPrice,
        unit_of_measure_qty: i64, min_price_increment_amount: DbnPrice, price_ratio: DbnPrice, strike_price: DbnPrice,
        inst_attrib_value: i32, underlying_id: u32, raw_instrument_id: u32, market_depth_implied: i32,
        market_depth: i32, market_segment_id: u32, max_trade_vol: u32, min_lot_size: i32, min_lot_size_block: i32,
        min_lot_size_round_lot: i32, min_trade_vol: u32, contract_multiplier: i32, decay_quantity: i32,
        original_contract_size: i32, trading_reference_date: u16, appl_id: i16, maturity_year: u16,
        decay_start_date: u16, channel_id: u16, currency: DbnText<4>, settl_currency: DbnText<4>, secsubtype: DbnText<6>,
        raw_symbol: DbnText<71>, group: DbnText<21>, exchange: DbnText<5>, asset: DbnText<7>, cfi: DbnText<7>, security_type: DbnText<7>,
        unit_of_measure: DbnText<31>, underlying: DbnText<21>, strike_price_currency: DbnText<4>, instrument_class: Letter,
        match_algorithm: Letter, md_security_trading_status: u8, main_fraction: u8, price_display_format: u8,
        settl_price_type: u8, sub_fraction: u8, underlying_product: u8, security_update_action: Letter,
        maturity_month: u8, maturity_day: u8, maturity_week: u8, user_defined_instrument: Letter,
        contract_multiplier_unit: i8, flow_schedule_type: i8, tick_rule: u8,
    }
    /// A definition of an instrument, version 3.
    DefinitionV3: v3::InstrumentDefMsg {
        ts_recv: u64, min_price_increment: DbnPrice, display_factor: DbnPrice, expiration: u64, activation: u64,
        high_limit_price: DbnPrice, low_limit_price: DbnPrice, max_price_variation: DbnPrice, unit_of_measure_qty: i64,
        min_price_increment_amount: DbnPrice, price_ratio: DbnPrice, strike_price: DbnPrice, raw_instrument_id: u64,
        leg_price: DbnPrice, leg_delta: DbnPrice, inst_attrib_value: i32, underlying_id: u32, market_depth_implied: i32,
        market_depth: i32, market_segment_id: u32, max_trade_vol: u32, min_lot_size: i32, min_lot_size_block: i32,
        min_lot_size_round_lot: i32, min_trade_vol: u32, contract_multiplier: i32, decay_quantity: i32,
        original_contract_size: i32, leg_instrument_id: u32, leg_ratio_price_numerator: i32,
        leg_ratio_price_denominator: i32, leg_ratio_qty_numerator: i32, leg_ratio_qty_denominator: i32,
        leg_underlying_id: u32, appl_id: i16, maturity_year: u16, decay_start_date: u16, channel_id: u16,
        leg_count: u16, leg_index: u16, currency: DbnText<4>, settl_currency: DbnText<4>, secsubtype: DbnText<6>,
        raw_symbol: DbnText<71>, group: DbnText<21>, exchange: DbnText<5>, asset: DbnText<11>, cfi: DbnText<7>,
        security_type: DbnText<7>, unit_of_measure: DbnText<31>, underlying: DbnText<21>, strike_price_currency: DbnText<4>,
        leg_raw_symbol: DbnText<71>, instrument_class: Letter, match_algorithm: Letter, main_fraction: u8,
        price_display_format: u8, sub_fraction: u8, underlying_product: u8, security_update_action: Letter,
        maturity_month: u8, maturity_day: u8, maturity_week: u8, user_defined_instrument: Letter,
        contract_multiplier_unit: i8, flow_schedule_type: i8, tick_rule: u8, leg_instrument_class: Letter,
        leg_side: Letter,
    }
}
