use ascar_keeper::content::Content;

#[test]
fn text_stays_text_and_other_bytes_come_back() {
    for (bytes, json) in [
        (b"a = 1\n".to_vec(), "\"a = 1\\n\""),
        (b"\xe4 \xff".to_vec(), "{\"hex\":\"e420ff\"}"),
        (Vec::new(), "\"\""),
    ] {
        let content = Content(bytes);
        assert_eq!(serde_json::to_string(&content).unwrap(), json);
        assert_eq!(serde_json::from_str::<Content>(json).unwrap(), content);
    }
}

#[test]
fn what_is_no_content_is_refused() {
    for json in [
        "{\"hex\":\"e\"}",
        "{\"hex\":\"zz\"}",
        "{\"hex\":\"\u{e4}\u{e4}\"}",
        "{\"base64\":\"aa\"}",
        "12",
        "null",
    ] {
        assert!(serde_json::from_str::<Content>(json).is_err(), "{json}");
    }
}
