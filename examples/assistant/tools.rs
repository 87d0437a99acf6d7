//! The tools of the assistant's programs: closures that know on whose behalf they act.

use lispbox::lang::{Call, ToolError, Tools};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Open,
    Paid,
}

#[derive(Deserialize)]
struct FindOrders {
    status: Option<Status>,
}

#[derive(Deserialize)]
struct SearchMail {
    query: String,
}

#[derive(Deserialize)]
struct SendMail {
    to: String,
    text: String,
}

/// Returns the tools of a user; must be called within a tokio runtime.
pub fn of(user: &str) -> Tools<'_> {
    let mut tools = Tools::new();
    let find = move |find: FindOrders, _: &Call| -> Result<Value, ToolError> {
        let orders = [("ann", 1, Status::Paid, 20.0), ("ann", 2, Status::Open, 12.5), ("bob", 3, Status::Open, 30.0)];
        let is_meant = |status| find.status.is_none_or(|wanted| wanted == status);
        let found = orders.into_iter().filter(|(owner, _, status, _)| *owner == user && is_meant(*status));
        Ok(found.map(|(_, id, status, total)| json!({"id": id, "status": status, "total": total})).collect())
    };
    tools.tool("orders/find", find).doc("The user's orders, all or those of a status: `open` or `paid`.").read_only();
    // Stands in for a request to another service.
    let search = async move |search: SearchMail, call: &Call| {
        tokio::time::sleep(Duration::from_millis(1)).await;
        call.progress(1.0, Some(1.0), "the folder is read");
        let mails = [("ann", "Invoice 1"), ("ann", "Lunch?"), ("bob", "Invoice 3")];
        let found = mails.into_iter().filter(|(owner, subject)| *owner == user && subject.contains(&search.query));
        Ok::<_, ToolError>(found.map(|(_, subject)| json!({"subject": subject})).collect::<Value>())
    };
    let send = |mail: SendMail, _: &Call| -> Result<String, ToolError> {
        match mail.to.contains('@') {
            true => Ok(format!("sent {} characters to {}", mail.text.len(), mail.to)),
            false => Err(ToolError::failed(format!("`{}` is no address", mail.to))),
        }
    };
    tools.tool("mail/send", send).doc("Sends a mail; the user is asked first.").writes();
    tools.async_tool("mail/search", search).doc("The user's mails with a text in their subject.").read_only();
    tools
}
