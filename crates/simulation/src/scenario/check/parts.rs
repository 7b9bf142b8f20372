//! Ranges of controllers, layouts and devices.

use ascar_congestion::RuleSet;

use super::{Checked, each_within, refuse, within};
use crate::scenario::{Control, Controller, Device, Layout};

pub(super) fn check_control(key: &str, control: &Control) -> Checked {
    within(
        format!("{key}.window_min"),
        control.window_min,
        (1.0, 65_536.0),
    )?;
    within(
        format!("{key}.window_max"),
        control.window_max,
        (control.window_min, 65_536.0),
    )?;
    within(
        format!("{key}.window"),
        control.window,
        (control.window_min, control.window_max),
    )?;
    within(format!("{key}.tau_us"), control.tau_us, (0.0, 1e9))?;
    within(format!("{key}.timeout_s"), control.timeout_s, (0.01, 1e6))?;
    within(
        format!("{key}.active_files"),
        f64::from(control.active_files),
        (0.0, 1e6),
    )?;
    within(format!("{key}.turn_ms"), control.turn_ms, (1.0, 1e6))?;
    within(
        format!("{key}.turn_idle_ms"),
        control.turn_idle_ms,
        (0.0, control.turn_ms),
    )?;
    if let Some(Err(fault)) = control.rules.as_deref().map(RuleSet::parse) {
        return refuse(format!("{key}.rules"), fault.to_string());
    }
    if (control.controller == Controller::Rules) != control.rules.is_some() {
        return refuse(
            format!("{key}.rules"),
            "a rule set is needed with controller = \"rules\", and allowed with that only",
        );
    }
    check_rivals(key, control)?;
    check_extensions(key, control)
}

fn check_rivals(key: &str, control: &Control) -> Checked {
    let own = &control.rivals;
    each_within(
        &format!("{key}.rivals"),
        &[
            ("latency_ms_max", own.latency_ms_max, (0.001, 1e6)),
            ("aimd_decrease", own.aimd_decrease, (0.01, 0.99)),
            ("cubic_decrease", own.cubic_decrease, (0.01, 0.99)),
            ("cubic_growth", own.cubic_growth, (1e-6, 1e6)),
            ("vegas_alpha", own.vegas_alpha, (0.0, 1e4)),
            ("vegas_beta", own.vegas_beta, (own.vegas_alpha, 1e4)),
            ("copa_delta", own.copa_delta, (1e-4, 1e4)),
            ("gradient2_queue", own.gradient2_queue, (0.0, 1e4)),
            ("gradient2_smoothing", own.gradient2_smoothing, (1e-3, 1.0)),
            ("bbr_window_gain", own.bbr_window_gain, (0.1, 100.0)),
            ("bbr_probe_gain", own.bbr_probe_gain, (1.0, 1.99)),
        ],
    )
}

fn check_extensions(key: &str, control: &Control) -> Checked {
    let most = control.most_mb_per_s.unwrap_or(1e6);
    within(format!("{key}.most_mb_per_s"), most, (0.001, 1e6))?;
    within(
        format!("{key}.least_mb_per_s"),
        control.least_mb_per_s,
        (0.0, most),
    )?;
    let own = &control.extensions;
    each_within(
        &format!("{key}.extensions"),
        &[
            ("piece_kib", f64::from(own.piece_kib), (0.0, 4_194_303.0)),
            ("minimum_period_s", own.minimum_period_s, (0.0, 1e6)),
            ("probe_interval_s", own.probe_interval_s, (0.0, 1e6)),
            ("probe_window", own.probe_window, (1.0, 256.0)),
            (
                "probe_replies",
                f64::from(own.probe_replies),
                (1.0, 65_535.0),
            ),
            (
                "fixed_cost_kib",
                f64::from(own.fixed_cost_kib),
                (0.0, 4_194_303.0),
            ),
            (
                "slow_weight_shift",
                f64::from(own.slow_weight_shift),
                (1.0, 16.0),
            ),
            ("timeout_factor", own.timeout_factor, (0.01, 1.0)),
        ],
    )?;
    if control.is_extended() && (control.rules.is_none() || control.faithful) {
        return refuse(
            format!("{key}.faithful"),
            "extensions, least_mb_per_s and most_mb_per_s need rules and faithful = false",
        );
    }
    Ok(())
}

pub(super) fn check_layout(key: &str, layout: &Layout) -> Checked {
    within(
        format!("{key}.start_percent"),
        layout.start_percent,
        (0.0, 99.9),
    )?;
    within(
        format!("{key}.spread_percent"),
        layout.spread_percent,
        (0.01, 100.0 - layout.start_percent),
    )?;
    within(
        format!("{key}.extent_kib"),
        f64::from(layout.extent_kib),
        (64.0, 1e7),
    )?;
    within(
        format!("{key}.fragmentation_percent"),
        layout.fragmentation_percent,
        (0.0, 100.0),
    )?;
    within(
        format!("{key}.used_percent"),
        layout.used_percent,
        (0.0, 99.0),
    )
}

pub(super) fn check_device(key: &str, device: &Device) -> Checked {
    let positive: Vec<(&str, f64)> = match device {
        Device::Mechanical(disk) => {
            within(format!("{key}.inner_speed"), disk.inner_speed, (0.01, 1.0))?;
            within(format!("{key}.zones"), f64::from(disk.zones), (1.0, 1000.0))?;
            within(
                format!("{key}.seek_track_ms"),
                disk.seek_track_ms,
                (0.0, disk.seek_full_ms),
            )?;
            within(
                format!("{key}.seek_exponent"),
                disk.seek_exponent,
                (0.05, 1.0),
            )?;
            within(
                format!("{key}.write_settle_ms"),
                disk.write_settle_ms,
                (0.0, 1e3),
            )?;
            within(format!("{key}.command_ms"), disk.command_ms, (0.0, 1e3))?;
            vec![
                ("capacity_gb", disk.capacity_gb),
                ("rpm", disk.rpm),
                ("read_mb_per_s", disk.read_mb_per_s),
                ("write_mb_per_s", disk.write_mb_per_s),
                ("seek_full_ms", disk.seek_full_ms),
            ]
        }
        Device::Flash(flash) => {
            within(
                format!("{key}.channels"),
                f64::from(flash.channels),
                (1.0, 1024.0),
            )?;
            within(
                format!("{key}.channel_kib"),
                f64::from(flash.channel_kib),
                (4.0, 65_536.0),
            )?;
            within(
                format!("{key}.spare_percent"),
                flash.spare_percent,
                (0.5, 1000.0),
            )?;
            within(
                format!("{key}.filled_percent"),
                flash.filled_percent,
                (0.0, 100.0),
            )?;
            within(format!("{key}.read_us"), flash.read_us, (0.0, 1e6))?;
            within(format!("{key}.write_us"), flash.write_us, (0.0, 1e6))?;
            within(format!("{key}.erase_ms"), flash.erase_ms, (0.0, 1e4))?;
            vec![
                ("capacity_gb", flash.capacity_gb),
                ("channel_read_mb_per_s", flash.channel_read_mb_per_s),
                ("channel_write_mb_per_s", flash.channel_write_mb_per_s),
                ("bus_mb_per_s", flash.bus_mb_per_s),
                ("erase_block_mib", flash.erase_block_mib),
            ]
        }
        Device::Memory(memory) => {
            within(format!("{key}.request_us"), memory.request_us, (0.0, 1e6))?;
            vec![
                ("capacity_gb", memory.capacity_gb),
                ("copy_mb_per_s", memory.copy_mb_per_s),
            ]
        }
    };
    for (field, value) in positive {
        within(format!("{key}.{field}"), value, (0.01, 1e7))?;
    }
    Ok(())
}
