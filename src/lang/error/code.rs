//! The stable codes of errors.

use std::borrow::Cow;
use std::fmt;

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $code:ident,)*) => {
        /// The stable code of an error: what programs bind as `:code`, and embedders match on.
        ///
        /// Codes are never renamed or reused within a major version; new ones may be added.
        ///
        /// ```
        /// # #[global_allocator]
        /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
        /// use lispbox::lang::{Engine, ErrorCode, World};
        ///
        /// let mut session = Engine::builder().build().unwrap().session();
        /// let outcome = session.run("(+ 1 nil)").eval::<i64>(&World::default()).unwrap();
        /// assert_eq!(outcome.into_result().unwrap_err().code(), ErrorCode::TypeError);
        /// ```
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[doc = $doc])+ $code,)*
            /// A code that is none of lispbox: the class of an exception that a program constructs, or a code that a
            /// host chooses.
            Other(String),
        }

        impl ErrorCode {
            /// All codes of lispbox.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$code,)*];

            /// Returns the code as text, as in [`Failure::error`](crate::Failure::error).
            ///
            /// ```
            /// use lispbox::lang::ErrorCode;
            /// assert_eq!(ErrorCode::from("ToolDenied"), ErrorCode::ToolDenied);
            /// assert_eq!(ErrorCode::ToolDenied.as_str(), "ToolDenied");
            /// ```
            pub fn as_str(&self) -> &str {
                match self {
                    $(ErrorCode::$code => stringify!($code),)*
                    ErrorCode::Other(code) => code,
                }
            }
        }

        impl From<&str> for ErrorCode {
            fn from(code: &str) -> ErrorCode {
                match code {
                    $(stringify!($code) => ErrorCode::$code,)*
                    _ => ErrorCode::Other(code.to_owned()),
                }
            }
        }

        impl From<ErrorCode> for Cow<'static, str> {
            fn from(code: ErrorCode) -> Cow<'static, str> {
                match code {
                    $(ErrorCode::$code => Cow::Borrowed(stringify!($code)),)*
                    ErrorCode::Other(code) => Cow::Owned(code),
                }
            }
        }
    };
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

codes! {
    /// A date in words has several meanings.
    AmbiguousDate,
    /// Several methods of a multimethod apply, and none is preferred.
    AmbiguousMethod,
    /// A name without a namespace may mean several functions, or a function and a tool.
    AmbiguousName,
    /// A name may mean several tools.
    AmbiguousTool,
    /// An argument is of the right type and out of range.
    ArgumentError,
    /// A division by zero, or a result that is no number.
    ArithmeticError,
    /// A function was called with a wrong number of arguments.
    ArityError,
    /// An `assert`, a `:pre` or a `:post` condition does not hold.
    AssertionError,
    /// The audit log cannot be written.
    AuditUnavailable,
    /// Too many evaluations are running; a later attempt can succeed.
    Busy,
    /// The evaluation was cancelled.
    Cancelled,
    /// A comment of another language.
    CommentSyntax,
    /// A `derive` that would make a tag its own ancestor.
    CyclicDerivation,
    /// Two columns of a CSV table have the same name.
    DuplicateColumn,
    /// A map or set literal contains a key twice.
    DuplicateKey,
    /// A program makes a call again that an earlier program has made, which did not end well.
    EffectRepeated,
    /// An operation would take all of an infinite sequence.
    EndlessSequence,
    /// An exception that a program made with `ex-info`.
    ExceptionInfo,
    /// A value refers to an atom or sequence of another session.
    ForeignCell,
    /// A format string does not fit its arguments.
    FormatError,
    /// A `#(…)` literal within another one.
    FunctionLiteral,
    /// A function that the embedder registered panicked.
    FunctionPanic,
    /// An argument that Clojure refuses with `IllegalArgumentException`.
    IllegalArgument,
    /// An operation at a time at which it is not possible.
    IllegalState,
    /// An index outside of a collection or string.
    IndexOutOfBounds,
    /// The data or a parameter of a run cannot be converted.
    InputError,
    /// The result of integer arithmetic does not fit 64 bits.
    IntegerOverflow,
    /// A defect of lispbox or of its host.
    InternalError,
    /// The arguments of `lisp_eval` or `lisp_env` are wrong.
    InvalidArguments,
    /// An unknown character literal.
    InvalidCharacter,
    /// A malformed reader conditional.
    InvalidConditional,
    /// Malformed CSV text.
    InvalidCsv,
    /// An unknown escape in a string.
    InvalidEscape,
    /// Malformed JSON text.
    InvalidJson,
    /// A malformed keyword.
    InvalidKeyword,
    /// Metadata that is no map, keyword, symbol or string.
    InvalidMetadata,
    /// A malformed number.
    InvalidNumber,
    /// A malformed pattern for dates.
    InvalidPattern,
    /// A malformed regular expression.
    InvalidRegex,
    /// A request that a script of the command line cannot carry out.
    InvalidRequest,
    /// A validator refuses the new value of an atom.
    InvalidState,
    /// A malformed symbol.
    InvalidSymbol,
    /// A tagged literal, such as `#inst`, with malformed text.
    InvalidTaggedText,
    /// Bytes that are no text in the expected encoding.
    InvalidText,
    /// Text that is no date or time, or one out of range.
    InvalidTime,
    /// A malformed URL.
    InvalidUrl,
    /// A value that JSON cannot represent.
    JsonError,
    /// A required key is missing.
    KeyNotFound,
    /// A lazy sequence that nests too deep to be a key.
    KeyTooDeep,
    /// A lazy sequence that is too long to be a key.
    KeyTooLarge,
    /// Another instance took the session over during the evaluation.
    LeaseLost,
    /// A limit was exceeded; [`Failure::limit`](crate::Failure::limit) names it.
    LimitExceeded,
    /// A map literal with an odd number of forms.
    MapLiteral,
    /// Markdown around a program.
    MarkdownFence,
    /// A name of excessive length.
    NameTooLong,
    /// Nesting beyond what the reader takes.
    NestingTooDeep,
    /// No clause of a `case`, `cond` or `condp` applies.
    NoMatchingClause,
    /// No method of a multimethod or protocol applies.
    NoMethod,
    /// A question about a run that does not exist, or where runs are not stored.
    NoRun,
    /// A session function where there is no session.
    NoSession,
    /// Something of Clojure that lispbox does not have.
    NotAvailable,
    /// `set!` of a dynamic variable outside of a `binding`.
    NotBound,
    /// A call of a value that is no function.
    NotCallable,
    /// Text without a form.
    NothingToRead,
    /// Text that is no number, for Java's methods that parse numbers.
    NumberFormat,
    /// Text that is no decimal.
    NumberFormatError,
    /// The pages of a tool cannot be followed: they repeat, or how to ask for the next one is not evident.
    PagingError,
    /// A run that is held to a plan would make a call that is not part of it; the call was not made.
    PlanExceeded,
    /// A quote or another prefix without a form behind it.
    PrefixWithoutForm,
    /// A program beyond the limit `program`.
    ProgramTooLarge,
    /// A lazy sequence or delay that needs its own value.
    RecursiveRealisation,
    /// The result of a call was used that a rehearsal did not make.
    RehearsedResult,
    /// A replayed run differs from its record; nothing was called.
    ReplayDiverged,
    /// A `derive` that an ancestor implies already.
    RedundantDerivation,
    /// A call with the run key of a call that had other arguments.
    RunKeyReused,
    /// A run that should wait for a person could not be stored.
    RunNotKept,
    /// A run that waits for a person, or no longer, cannot be resumed by this call.
    RunNotResumed,
    /// A downstream server cannot be reached.
    ServerUnavailable,
    /// Another request holds the session.
    SessionBusy,
    /// A stored session cannot be read.
    SessionDamaged,
    /// A session was removed after its time.
    SessionExpired,
    /// A session could not be closed.
    SessionNotClosed,
    /// A session could not be copied.
    SessionNotForked,
    /// The changes of an evaluation could not be stored.
    SessionNotKept,
    /// A session text that is damaged.
    SnapshotError,
    /// A text that is no session.
    SnapshotFormat,
    /// A session that needs functions or tools which the engine does not have.
    SnapshotMissing,
    /// A session of another format version.
    SnapshotVersion,
    /// The store of the sessions cannot be reached.
    StoreUnavailable,
    /// The run waits for a decision of a person.
    Suspended,
    /// A special form or macro of the wrong shape.
    SyntaxError,
    /// Text beyond what `read-string` takes.
    TextTooLong,
    /// A tool refuses its arguments.
    ToolArgumentError,
    /// A server has changed a tool since it was pinned, and no person has accepted that.
    ToolChanged,
    /// A policy denies a call.
    ToolDenied,
    /// A tool failed.
    ToolError,
    /// A call needs the approval of a person.
    ToolNeedsApproval,
    /// A tool that the embedder registered panicked.
    ToolPanic,
    /// The result of a tool exceeds what is accepted.
    ToolResultTooLarge,
    /// A tool did not answer in time.
    ToolTimeout,
    /// A value of the wrong type.
    TypeError,
    /// Brackets that do not match.
    UnbalancedBrackets,
    /// A name without a definition.
    UnboundVariable,
    /// A character that begins no form.
    UnexpectedCharacter,
    /// A name that discovery does not find.
    UnknownName,
    /// An option that a function does not have.
    UnknownOption,
    /// A resource that the server does not have.
    UnknownResource,
    /// A session that does not exist.
    UnknownSession,
    /// A tagged literal of an unknown tag.
    UnknownTag,
    /// A tool that does not exist.
    UnknownTool,
    /// A type that does not exist.
    UnknownType,
    /// A unit of time that does not exist.
    UnknownUnit,
    /// A time zone that does not exist.
    UnknownZone,
    /// Syntax of Clojure that the reader does not take.
    UnsupportedSyntax,
    /// A block comment without an end.
    UnterminatedComment,
    /// A string without an end.
    UnterminatedString,
    /// The worker process of a session ended.
    WorkerLost,
}
