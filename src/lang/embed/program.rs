//! Programs that are read once and run often.

use crate::engine::Engine;
use crate::evaluation;
use crate::failure::Failure;
use crate::form::Form;
use arcstr::ArcStr;
use std::sync::Arc;

/// A program. Cloning it is cheap, and it may run in several sessions at the same time.
///
/// Text converts to a program that is read when it runs; [`Engine::compile`] reads it at once.
#[derive(Clone)]
pub struct Program {
    pub(crate) text: ArcStr,
    pub(crate) forms: Option<Arc<[Form]>>,
}

impl Engine {
    /// Reads a program.
    ///
    /// # Errors
    /// Returns the failure that a run would have, such as unbalanced brackets. Names are resolved when the program
    /// runs, since they depend on its session.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Engine, World};
    ///
    /// let engine = Engine::builder().build().unwrap();
    /// let program = engine.compile("(* price (- 1 discount))").unwrap();
    /// let mut session = engine.session();
    /// for (price, cost) in [(10, 5.0), (20, 10.0)] {
    ///     let run = session.run(&program).set("price", &price).set("discount", &0.5);
    ///     assert_eq!(run.eval::<f64>(&World::default()).unwrap().done(), Some(cost));
    /// }
    /// assert_eq!(engine.compile("(inc").unwrap_err().error, "UnbalancedBrackets");
    /// ```
    pub fn compile(&self, text: &str) -> Result<Program, Box<Failure>> {
        let forms = evaluation::read(text, "program")?;
        Ok(Program { text: text.into(), forms: Some(forms.into()) })
    }
}

impl Program {
    /// Returns the text.
    ///
    /// ```
    /// use lispbox::lang::Program;
    ///
    /// assert_eq!(Program::from("(+ 1 1)").text(), "(+ 1 1)");
    /// ```
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl From<&str> for Program {
    fn from(text: &str) -> Program {
        Program { text: text.into(), forms: None }
    }
}

impl From<String> for Program {
    fn from(text: String) -> Program {
        Program { text: text.into(), forms: None }
    }
}

impl From<&String> for Program {
    fn from(text: &String) -> Program {
        Program::from(text.as_str())
    }
}

impl From<&Program> for Program {
    fn from(program: &Program) -> Program {
        program.clone()
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Program").field(&self.text).finish()
    }
}
