//! Files that people write, and formulas.

use std::time::Duration;

use ascar_agent::config::Config as AgentConfig;
use ascar_congestion::RuleSet;
use ascar_credentials::Credentials;
use ascar_expression::{Expression, Value};
use ascar_guard::Guard;
use ascar_interface::config::Config as InterfaceConfig;
use ascar_messaging::Options;
use ascar_messaging::file::ConfigFile;
use ascar_proxy::config::Config as ProxyConfig;
use ascar_proxy::kept::{Moment, Owner, Record};
use ascar_simulation::Scenario;

use crate::scratch;

/// The file of `ascard agent`.
pub fn agent_file(bytes: &[u8]) {
    config::<AgentConfig>(bytes);
}

/// The file of `ascard interface`.
pub fn interface_file(bytes: &[u8]) {
    config::<InterfaceConfig>(bytes);
}

/// The file of `ascard proxy`.
pub fn proxy_file(bytes: &[u8]) {
    match ProxyConfig::parse(&String::from_utf8_lossy(bytes)) {
        Ok(config) => assert!(!config.ways().expect("its addresses were read").is_empty()),
        Err(fault) => assert!(!fault.to_string().is_empty()),
    }
}

/// The file of the rules that a proxy has kept.
pub fn kept_rules(bytes: &[u8]) {
    let owner = Owner {
        controller: "client1".to_owned(),
        workload: "blocks".to_owned(),
    };
    let at = Moment {
        now: Duration::ZERO,
        unix: Duration::from_secs(1_800_000_000),
    };
    match Record::parse(bytes).and_then(|record| record.kept(&owner, at)) {
        Ok(kept) => assert!(kept.limit.is_none_or(|limit| limit.ends_at <= limit.length)),
        Err(why) => assert!(!why.is_empty() && !why.contains('\n')),
    }
}

fn config<C: ConfigFile>(bytes: &[u8]) {
    if let Err(fault) = C::parse(&String::from_utf8_lossy(bytes)) {
        assert!(!fault.to_string().is_empty());
    }
}

/// The file that says where the message server is.
pub fn connection_file(bytes: &[u8]) {
    let path = scratch().join("connection.toml");
    std::fs::write(&path, bytes).expect("a file can be written in memory");
    if let Ok(options) = Options::read(&path) {
        let _ = options.address();
    }
}

/// A `.creds` file.
pub fn credentials(bytes: &[u8]) {
    if let Ok(user) = Credentials::parse(&String::from_utf8_lossy(bytes)) {
        let _ = user.login("nonce");
    }
}

/// A formula; what is read is evaluated with names of every type.
pub fn expression(bytes: &[u8]) {
    let Ok(formula) = Expression::parse(&String::from_utf8_lossy(bytes)) else {
        return;
    };
    for value in [
        Value::None,
        Value::Boolean(true),
        Value::Number(-0.5),
        Value::Number(1e300),
        Value::Text("x".to_owned()),
    ] {
        let found: Result<Value, String> = formula.evaluate_or_none(&|_| Ok(value.clone()));
        if let Err(words) = found {
            assert!(!words.is_empty());
        }
    }
}

/// `[guard]` of a study, in JSON.
pub fn guard(bytes: &[u8]) {
    let _ = Guard::from_json(&String::from_utf8_lossy(bytes));
}

/// A file of rules; what is read is written and read again.
pub fn rules(bytes: &[u8]) {
    if let Ok(set) = RuleSet::parse(&String::from_utf8_lossy(bytes)) {
        assert_eq!(RuleSet::parse(&set.to_text()), Ok(set));
    }
}

/// A scenario of the simulated cluster, in JSON.
pub fn scenario(bytes: &[u8]) {
    let _ = Scenario::from_json(&String::from_utf8_lossy(bytes));
}

/// A file in Filebench's language.
pub fn wml(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Err(error) = ascar_load::wml::parse(&text) {
        assert!(
            error.line >= 1 && error.line <= text.lines().count().max(1),
            "{error}"
        );
    }
}
