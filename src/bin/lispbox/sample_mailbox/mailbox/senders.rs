//! The senders of the messages, and templates of what they write.

/// A sender.
pub struct Sender {
    /// The display name.
    pub name: &'static str,
    /// The address.
    pub email: &'static str,
    /// The kind of the messages.
    pub kind: Kind,
    /// The relative frequency of the messages.
    pub weight: u64,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A finished build.
    Build,
    /// A code review.
    Review,
    /// An alert of a machine.
    Alert,
    /// An invoice.
    Invoice,
    /// A message of a customer.
    Customer,
    /// A message of a colleague.
    Team,
    /// A newsletter.
    News,
    /// A travel booking.
    Travel,
}

/// All senders.
pub const SENDERS: &[Sender] = &[
    Sender { name: "Northwind CI", email: "builds@ci.northwind.example", kind: Kind::Build, weight: 19 },
    Sender { name: "Code Review", email: "review@code.northwind.example", kind: Kind::Review, weight: 16 },
    Sender { name: "Watchtower", email: "alerts@watchtower.example", kind: Kind::Alert, weight: 13 },
    Sender { name: "Priya Raman", email: "priya@northwind.example", kind: Kind::Team, weight: 7 },
    Sender { name: "Tomás Ferreira", email: "tomas@northwind.example", kind: Kind::Team, weight: 6 },
    Sender { name: "Ingrid Solberg", email: "ingrid@northwind.example", kind: Kind::Team, weight: 5 },
    Sender { name: "Marcus Webb", email: "marcus@northwind.example", kind: Kind::Team, weight: 4 },
    Sender { name: "Aiko Tanaka", email: "aiko@northwind.example", kind: Kind::Team, weight: 3 },
    Sender { name: "Dana Whitfield", email: "dana@fabrikam.example", kind: Kind::Customer, weight: 4 },
    Sender { name: "Samuel Okafor", email: "samuel@contoso.example", kind: Kind::Customer, weight: 3 },
    Sender { name: "Léa Marchand", email: "lea@tailspin.example", kind: Kind::Customer, weight: 3 },
    Sender { name: "Grace Lindqvist", email: "grace@adventureworks.example", kind: Kind::Customer, weight: 2 },
    Sender { name: "Cloudbase Billing", email: "billing@cloudbase.example", kind: Kind::Invoice, weight: 3 },
    Sender { name: "Northwind Finance", email: "finance@northwind.example", kind: Kind::Invoice, weight: 3 },
    Sender { name: "Papertrail & Co", email: "accounts@papertrail.example", kind: Kind::Invoice, weight: 2 },
    Sender { name: "The Weekly Stack", email: "hello@weeklystack.example", kind: Kind::News, weight: 3 },
    Sender { name: "Data Notes", email: "notes@datanotes.example", kind: Kind::News, weight: 2 },
    Sender { name: "Conference Desk", email: "desk@devconf.example", kind: Kind::News, weight: 2 },
    Sender { name: "Skyline Travel", email: "trips@skyline.example", kind: Kind::Travel, weight: 2 },
    Sender { name: "Harbour Hotels", email: "stay@harbour.example", kind: Kind::Travel, weight: 1 },
];

/// The recipients of copies: name and address.
pub const COLLEAGUES: &[(&str, &str)] = &[
    ("Priya Raman", "priya@northwind.example"),
    ("Tomás Ferreira", "tomas@northwind.example"),
    ("Ingrid Solberg", "ingrid@northwind.example"),
    ("Platform Team", "platform@northwind.example"),
    ("Support", "support@northwind.example"),
];

impl Kind {
    /// True for kinds with replies.
    pub fn is_conversation(self) -> bool {
        matches!(self, Kind::Review | Kind::Customer | Kind::Team)
    }

    /// The label of the messages.
    pub fn label(self) -> &'static str {
        match self {
            Kind::Build => "builds",
            Kind::Review => "reviews",
            Kind::Alert => "alerts",
            Kind::Invoice => "finance",
            Kind::Customer => "customers",
            Kind::Team => "team",
            Kind::News => "newsletters",
            Kind::Travel => "travel",
        }
    }

    /// The percentage of messages left unread.
    pub fn left_unread(self) -> u64 {
        match self {
            Kind::Build | Kind::Alert => 34,
            Kind::News => 55,
            Kind::Review => 22,
            Kind::Customer | Kind::Team => 9,
            Kind::Invoice | Kind::Travel => 15,
        }
    }

    /// The percentage of messages with an attachment.
    pub fn attaches(self) -> u64 {
        match self {
            Kind::Invoice => 92,
            Kind::Travel => 60,
            Kind::Customer => 22,
            Kind::Team => 14,
            _ => 0,
        }
    }

    /// The attachment: a template of the name, and the media type.
    pub fn attachment(self) -> (&'static str, &'static str) {
        match self {
            Kind::Invoice => ("invoice-<build>.pdf", "application/pdf"),
            Kind::Travel => ("itinerary-<build>.pdf", "application/pdf"),
            Kind::Customer => ("screenshot-<n>.png", "image/png"),
            _ => ("<project>-notes.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        }
    }

    /// The greeting.
    pub fn greeting(self) -> &'static str {
        match self {
            Kind::Build | Kind::Alert => "This is an automated message.",
            Kind::News => "Hello, and welcome to this week's issue.",
            Kind::Invoice | Kind::Travel => "Dear Robin Hale,",
            _ => "Hi Robin,",
        }
    }

    /// The closing.
    pub fn closing(self) -> &'static str {
        match self {
            Kind::Build | Kind::Alert => "You receive this because you are on the rotation.",
            Kind::News => "Unsubscribe at any time from the link in your profile.",
            Kind::Invoice | Kind::Travel => "Kind regards,",
            _ => "Thanks,",
        }
    }

    /// Templates of subjects.
    pub fn subjects(self) -> &'static [&'static str] {
        match self {
            Kind::Build => &[
                "[<project>] Build #<build> failed on main",
                "[<project>] Build #<build> passed on main",
                "[<project>] Nightly #<build>: <n> tests flaky",
            ],
            Kind::Review => &[
                "[<project>] Change <build>: retry idempotent requests",
                "[<project>] Change <build>: split the session table",
                "[<project>] Change <build>: drop the legacy exporter",
            ],
            Kind::Alert => &[
                "[warning] <project>: latency p99 above <n>0 ms",
                "[critical] <project>: disk <percent>% full",
                "[resolved] <project>: error rate back to normal",
            ],
            Kind::Invoice => &[
                "Invoice <build> over EUR <money>",
                "Payment received for invoice <build>",
                "Reminder: invoice <build> is due on <day>",
            ],
            Kind::Customer => &[
                "Question about the export of order <build>",
                "<project> shows an old balance",
                "Renewal for <n> seats",
            ],
            Kind::Team => &[
                "Planning for <day>",
                "Notes from the <project> sync",
                "Can you look at the <project> numbers?",
                "Handover for next week",
            ],
            Kind::News => &[
                "Issue <n>: queues, backpressure and a long weekend",
                "Issue <n>: <n> ways to index a column",
                "The programme for <place> is out",
            ],
            Kind::Travel => &["Your trip to <place> on <day>", "Check-in for <place> opens", "Your stay in <place>"],
        }
    }

    /// Templates of sentences, in an order that works from any starting point.
    pub fn sentences(self) -> &'static [&'static str] {
        match self {
            Kind::Build => BUILD,
            Kind::Review => REVIEW,
            Kind::Alert => ALERT,
            Kind::Invoice => INVOICE,
            Kind::Customer => CUSTOMER,
            Kind::Team => TEAM,
            Kind::News => NEWS,
            Kind::Travel => TRAVEL,
        }
    }
}

const BUILD: &[&str] = &[
    "Pipeline <build> of <project> ended after <n> minutes on runner <n>.",
    "<n> of the integration tests did not pass, most of them in the payment flow.",
    "The first failing step was the contract check against the <project> stubs.",
    "Coverage moved to <percent> percent, which is within the agreed range.",
    "The cache was cold for this run, so restoring dependencies took longer than usual.",
    "Artifacts are kept for <n> days and can be fetched from the build page.",
    "The last change on this branch was merged on <day> after two approvals.",
    "A second attempt has been queued and will report here when it is done.",
];

const REVIEW: &[&str] = &[
    "I went through the change and left <n> comments, none of them blocking.",
    "The retry loop should give up after the deadline of the caller, not after a fixed count.",
    "Could we keep the old column for one more release, so that a rollback stays possible?",
    "The test in <project> now takes <n> seconds, which is a lot for what it checks.",
    "I like how the error carries the request id; we should do the same in <project>.",
    "Please squash the fixups before it goes in, the history is hard to follow otherwise.",
    "There is a race between the sweeper and the writer that the new lock does not cover.",
    "Otherwise this is ready from my side and can go out with the train on <day>.",
];

const ALERT: &[&str] = &[
    "The monitor of <project> has been above its threshold for <n> minutes.",
    "The value at the time of this message is <percent> percent, measured over five minutes.",
    "Two of the replicas in the second zone answer slowly, the others are as usual.",
    "The same monitor last fired on <day> and cleared without anybody acting on it.",
    "A deployment of <project> ended <n> minutes before the first of these readings.",
    "The runbook asks to look at the connection pool and at the age of the oldest job.",
    "Nobody has acknowledged this yet; it goes to the second line in <n> minutes.",
    "Related: <n> warnings of lower severity were grouped under this one.",
];

const INVOICE: &[&str] = &[
    "Please find attached the invoice <build> for the services of the past month.",
    "The amount of EUR <money> will be collected from your account on <day>.",
    "Usage of <project> was <percent> percent of the committed volume in this period.",
    "A credit of EUR <money> from the previous statement has been taken into account.",
    "If your purchase order number has changed, let us know before the end of the week.",
    "Our bank details are unchanged; we will never ask you to change them by mail.",
    "The detailed usage report can be downloaded from the billing page for <n> days.",
    "For questions about this invoice just answer to this message and quote its number.",
];

const CUSTOMER: &[&str] = &[
    "Since the update on <day> the export of our orders stops after <n> rows.",
    "Our finance team noticed that the totals in <project> differ by EUR <money>.",
    "We tried it in another browser and from another office with the same result.",
    "It would help us a lot to know whether this is on your side before our closing on <day>.",
    "About <n> of our people are affected, mostly those who work with the old reports.",
    "We would also like to talk about <n> more seats for the team in <place>.",
    "The person who set this up has left us, so please explain it as to a newcomer.",
    "A call on <day> would be fine, any time after ten o'clock works for us.",
];

const TEAM: &[&str] = &[
    "Quick summary of where we are with <project>: the migration is <percent> percent through.",
    "The numbers from last week look better than I expected, but I do not trust the sample yet.",
    "Could you take the review of the <project> change, I am out from <day> on?",
    "We agreed to leave the old endpoint running for <n> more days and then look again.",
    "Support has <n> open tickets on this, and I would like to answer them together.",
    "I moved the planning to <day>, because half of the team is in <place>.",
    "The draft is in the shared folder; comments until <day> would be perfect.",
    "Let us not decide this in a thread, I will put it on the agenda for the sync.",
];

const NEWS: &[&str] = &[
    "This week we look at how teams of <n> people keep their queues short.",
    "A reader from <place> describes how one missing index cost them a night.",
    "The benchmark everybody quoted last month turns out to measure the network.",
    "There are <n> open positions in the job section, most of them remote.",
    "Our interview is about the unglamorous part of running <project> at scale.",
    "The call for talks closes on <day>, and first-time speakers get a mentor.",
    "Early tickets are EUR <money> and include the workshops on the first day.",
    "The long read explains why retries without a budget make every outage worse.",
];

const TRAVEL: &[&str] = &[
    "Your booking for <place> is confirmed under the number <build>.",
    "The train leaves on <day> from platform <n>; please be there ten minutes early.",
    "You can change your reservation free of charge until two days before departure.",
    "The price of EUR <money> includes breakfast and the local tax.",
    "The hotel is <n> minutes on foot from the venue, and keeps luggage after check-out.",
    "Bring an identity document that is valid for the whole of your stay in <place>.",
    "The receipt is attached and has also been sent to your finance department.",
    "If your plans change, answer to this message and we will find another connection.",
];
