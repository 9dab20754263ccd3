//! Makes a template pay for what its operators read.
//!
//! minijinja takes fuel for each operation, and for the text that an operation makes. It takes none
//! for the text that a comparison reads, nor for lists within lists. `a == b` with two texts of
//! megabytes, thousands of times, would hold a page for minutes, and `'' ~ [[1] * 9999] * 9999`
//! would fill its memory. So each operand that can be long is put into a call that takes fuel for it:
//! `a == b` becomes `__read(a) == __read(b)`.
//!
//! The product `a * 1` of a list only remembers `a`. In a loop it would become a chain that is too
//! deep for the stack, so a call makes a list of each product, as it does of each slice.
//!
//! This follows minijinja's grammar to find where an operand begins and ends. A tag that it cannot
//! follow is refused, as an operand could hide in it.

use std::iter::repeat_n;
use std::mem;
use std::ops::Range;

use super::prices::{ITEM, LISTED, READ, VISITED};
use super::tokens::{Sort, Token, tokens};
use crate::error::{Error, Result};

/// The statements with expressions in them.
const STATEMENTS: &[&str] =
    &["set", "for", "if", "elif", "with", "macro", "call", "filter", "autoescape", "do"];
/// The longest literal that costs nothing, in bytes.
const MAX_CHEAP: usize = 256;

/// Puts calls around the operands in the code of a tag. `is_statement` says whether it begins with
/// a word such as `if`.
///
/// Errors: `bad-template` if it does not follow the grammar.
pub(super) fn metered(code: &str, is_statement: bool) -> Result<String> {
    let tokens = tokens(code);
    let word = tokens.first().filter(|_| is_statement).map(|token| token.text);
    if word.is_some_and(|word| !STATEMENTS.contains(&word)) {
        return Ok(code.into());
    }
    let first = usize::from(is_statement);
    let mut meter = Meter {
        tokens: &tokens,
        word: word.unwrap_or_default(),
        at: first,
        atom: first,
        groups: vec![Group::new(Kind::Code, first, first)],
        items: None,
        is_unpacked: false,
        calls: Vec::new(),
        signs: Vec::new(),
    };
    let mut next = Next::Expression;
    while meter.at < tokens.len() {
        let at = meter.at;
        next = meter.token(next).ok_or_else(|| {
            let rest = &code[tokens[at].start..];
            let shown = &rest[..rest.floor_char_boundary(40)];
            Error::BadTemplate(format!("a tag cannot be read at `{shown}`"))
        })?;
        meter.at += 1;
    }
    meter.end_items(tokens.len());
    meter.end_expression(tokens.len(), true);
    if meter.groups.len() > 1 {
        return Err(Error::BadTemplate("syntax error: a bracket is not closed".into()));
    }
    Ok(meter.text(code))
}

/// The token that can come next.
#[derive(Clone, Copy, PartialEq)]
enum Next {
    /// The first of an expression.
    Expression,
    /// The first of an operand within an expression.
    Operand,
    /// An operator, or more of the operand before it.
    Operator,
    /// The operand of the test before it, or an operator.
    Argument,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// The whole code.
    Code,
    /// A list, an expression or the arguments of a call.
    Plain,
    /// The arguments of a call that compares or counts them.
    Paying,
    /// A key or a slice.
    Subscript,
    Map,
}

// The strengths of operators. One ends the operands of those that are as strong or stronger.
const COMPARES: usize = 0;
const ADDS: usize = 1;
const JOINS: usize = 2;

/// The code within a pair of brackets.
struct Group {
    kind: Kind,
    /// The bracket.
    open: usize,
    /// The first token of the value that the bracket belongs to.
    atom: usize,
    /// The first token of the expression.
    expression: usize,
    /// Whether the expression pays as a whole.
    pays: bool,
    /// The first token of the operand of each strength.
    starts: [usize; 3],
    /// Whether an operator of that strength, which pays, is before the operand.
    after: [bool; 3],
    /// The left operand of a comparison, and whether that is `in`.
    left: Option<(Range<usize>, bool)>,
    /// Whether the operand of [`JOINS`] is a product.
    is_product: bool,
    is_slice: bool,
}

impl Group {
    fn new(kind: Kind, atom: usize, first: usize) -> Self {
        let (starts, after) = ([first; 3], [false; 3]);
        let (pays, open) = (false, first.saturating_sub(1));
        let (left, is_product, is_slice) = (None, false, false);
        Self {
            kind,
            open,
            atom,
            expression: first,
            pays,
            starts,
            after,
            left,
            is_product,
            is_slice,
        }
    }
}

struct Meter<'a> {
    tokens: &'a [Token<'a>],
    /// The statement's name.
    word: &'a str,
    at: usize,
    /// The first token of the operand, without operators before it.
    atom: usize,
    groups: Vec<Group>,
    /// The first token after the `in` of a `for`, until the list ends.
    items: Option<usize>,
    /// Whether each item of a `for` is unpacked.
    is_unpacked: bool,
    /// Calls: the first token, the name, the last token. One that begins where another begins is
    /// around it if it comes later.
    calls: Vec<(usize, &'static str, usize)>,
    /// Tokens that are replaced.
    signs: Vec<(usize, &'static str)>,
}

impl Meter<'_> {
    /// The text of a token; nothing after the end.
    fn sign(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| token.text)
    }

    fn is_name(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| token.sort == Sort::Name)
    }

    /// The innermost group. There is always one.
    fn group(&mut self) -> &mut Group {
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }

    /// Takes a token; `None` if it cannot come here.
    fn token(&mut self, next: Next) -> Option<Next> {
        let (at, token) = (self.at, self.tokens[self.at]);
        let ends_test = ["and", "or", "else", "is"].contains(&token.text);
        match next {
            Next::Expression | Next::Operand => self.operand(next == Next::Expression),
            Next::Argument if token.text == "-" => Some(Next::Operand),
            Next::Argument if token.sort == Sort::Name && ends_test => self.operator(),
            Next::Argument if token.sort != Sort::Sign || ["[", "{"].contains(&token.text) => {
                self.atom = at;
                self.operand(false)
            }
            Next::Argument | Next::Operator => self.operator(),
        }
    }

    /// Takes a token where an operand begins. `is_first` says whether an expression begins.
    fn operand(&mut self, is_first: bool) -> Option<Next> {
        let (at, token) = (self.at, self.tokens[self.at]);
        match (token.sort, token.text) {
            (Sort::Name, "not") if is_first => {
                self.begin(at + 1);
                Some(Next::Expression)
            }
            (Sort::Name, "loop") if ![".", "(", "is", "="].contains(&self.sign(at + 1)) => None,
            // No template may replace the functions that the calls name.
            (Sort::Name, name) if name.starts_with("__") => None,
            (Sort::Name | Sort::Number | Sort::Text, _) => {
                self.atom = at;
                Some(Next::Operator)
            }
            (Sort::Sign, "-") => Some(Next::Operand),
            (Sort::Sign, "(" | "[") => Some(self.open(Kind::Plain, at)),
            (Sort::Sign, "{") => Some(self.open(Kind::Map, at)),
            (Sort::Sign, ")" | "]" | "}") => self.close(),
            (Sort::Sign, ":") => self.colon(),
            (Sort::Sign, "*" | "**") if is_first => {
                self.begin(at + 1);
                let pays = token.text == "**";
                let group = self.group();
                group.expression = at + 1;
                group.pays |= pays;
                Some(Next::Expression)
            }
            _ => None,
        }
    }

    /// Takes a token after an operand.
    fn operator(&mut self) -> Option<Next> {
        let (at, token) = (self.at, self.tokens[self.at]);
        if token.sort == Sort::Number {
            return None;
        }
        if token.sort == Sort::Text {
            // Strings beside one another are one.
            return (self.tokens[at - 1].sort == Sort::Text).then_some(Next::Operator);
        }
        let is_outermost = self.groups.len() == 1;
        match token.text {
            "." => self.field(),
            "(" => {
                let called = self.tokens[at - 1].text;
                let is_loop = called == "loop" && self.atom == at - 1;
                let is_changed = called == "changed" && self.sign(at.wrapping_sub(2)) == ".";
                let pays = is_loop || is_changed;
                Some(self.open(if pays { Kind::Paying } else { Kind::Plain }, self.atom))
            }
            "[" => Some(self.open(Kind::Subscript, self.atom)),
            "|" => {
                self.at += 1;
                self.is_name(self.at).then_some(Next::Operator)
            }
            "is" => self.test(),
            "," => {
                self.is_unpacked |= self.items.is_none();
                self.end_expression(at, true);
                Some(Next::Expression)
            }
            ":" => self.colon(),
            "=" => {
                self.end_expression(at, false);
                self.group().pays |= is_outermost && self.word == "with";
                Some(Next::Expression)
            }
            "if" | "else" | "and" | "or" | "recursive" => {
                let ends = ["if", "recursive"].contains(&token.text);
                if is_outermost && ends {
                    self.end_items(at);
                }
                self.end_operands(None, false, at, at + 1);
                Some(Next::Expression)
            }
            "in" if is_outermost && self.word == "for" && self.items.is_none() => {
                self.begin(at + 1);
                self.items = Some(at + 1);
                Some(Next::Expression)
            }
            "not" => {
                self.at += 1;
                (self.sign(self.at) == "in").then(|| self.compares(at, true))
            }
            "in" => Some(self.compares(at, true)),
            "==" | "!=" | "<" | "<=" | ">" | ">=" => Some(self.compares(at, false)),
            "+" | "-" => {
                self.end_operands(Some(ADDS), token.text == "+", at, at + 1);
                Some(Next::Operand)
            }
            "~" => {
                self.end_operands(Some(JOINS), true, at, at + 1);
                Some(Next::Operand)
            }
            "*" => {
                self.group().is_product = true;
                Some(Next::Operand)
            }
            "/" | "//" | "%" | "**" => Some(Next::Operand),
            ")" | "]" | "}" => self.close(),
            _ => None,
        }
    }

    /// Takes `.name` or `.0`.
    fn field(&mut self) -> Option<Next> {
        let dot = self.at;
        self.at += 1;
        if self.tokens.get(self.at)?.sort == Sort::Number {
            self.calls.push((self.atom, ITEM, self.at));
            self.signs.push((dot, ", "));
            return Some(Next::Operator);
        }
        self.is_name(self.at).then_some(Next::Operator)
    }

    /// Takes the test after `is`.
    fn test(&mut self) -> Option<Next> {
        self.at += 1;
        if self.sign(self.at) == "not" {
            self.at += 1;
        }
        while self.is_name(self.at) && self.sign(self.at + 1) == "." {
            self.at += 2;
        }
        self.is_name(self.at).then_some(Next::Argument)
    }

    fn compares(&mut self, at: usize, is_in: bool) -> Next {
        self.end_operands(Some(COMPARES), true, at, self.at + 1);
        if let Some((_, left_is_in)) = &mut self.group().left {
            *left_is_in = is_in;
        }
        Next::Operand
    }

    /// Takes the colon of a map or a slice.
    fn colon(&mut self) -> Option<Next> {
        match self.group().kind {
            Kind::Subscript => {
                self.end_expression(self.at, false);
                self.group().is_slice = true;
            }
            Kind::Map => {
                let key = self.group().expression..self.at;
                self.end_expression(self.at, false);
                self.pay(key);
            }
            _ => return None,
        }
        Some(Next::Expression)
    }

    fn open(&mut self, kind: Kind, atom: usize) -> Next {
        self.groups.push(Group::new(kind, atom, self.at + 1));
        Next::Expression
    }

    fn close(&mut self) -> Option<Next> {
        if self.groups.len() == 1 {
            return None;
        }
        let at = self.at;
        self.end_expression(at, true);
        let group = self.groups.pop()?;
        self.atom = group.atom;
        if group.kind == Kind::Subscript && group.is_slice {
            self.calls.push((group.atom, VISITED, group.open - 1));
            self.calls.push((group.atom, LISTED, at));
        } else if group.kind == Kind::Subscript && !self.is_field(group.open + 1..at) {
            self.calls.push((group.atom, ITEM, at));
            self.signs.extend([(group.open, ", "), (at, "")]);
        }
        // `call(x) f()`: the brackets after `call` hold names of parameters, not a value.
        let is_names = self.word == "call" && self.groups.len() == 1 && group.open == 1;
        if is_names {
            self.begin(at + 1);
            return Some(Next::Expression);
        }
        Some(Next::Operator)
    }

    /// Forgets the operands before `next`.
    fn begin(&mut self, next: usize) {
        let group = self.group();
        (group.starts, group.after, group.left) = ([next; 3], [false; 3], None);
        group.is_product = false;
    }

    /// Ends the operands that an operator of this strength ends; all if there is none. The operator
    /// is at `end`, and `next` comes after it.
    fn end_operands(&mut self, strength: Option<usize>, pays: bool, end: usize, next: usize) {
        for class in (strength.unwrap_or(COMPARES)..=JOINS).rev() {
            let before = strength == Some(class) && pays;
            let group = self.group();
            let operand = group.starts[class]..end;
            let after = mem::replace(&mut group.after[class], before);
            group.starts[class] = next;
            let is_product = class == JOINS && mem::take(&mut group.is_product);
            if class == COMPARES {
                let left = group.left.take();
                group.left = before.then(|| (operand.clone(), false));
                if let Some((left, is_in)) = left {
                    // A comparison reads no more than the shorter operand.
                    if !self.is_cheap(&left) && (is_in || !self.is_cheap(&operand)) {
                        self.pay(left);
                        self.pay(operand);
                    }
                }
                continue;
            }
            if is_product && !operand.is_empty() {
                self.calls.push((operand.start, LISTED, operand.end - 1));
            }
            if before || after {
                self.pay(operand);
            }
        }
    }

    /// Ends an expression before the token `end`. `is_value` says whether it is one, and no name.
    fn end_expression(&mut self, end: usize, is_value: bool) {
        self.end_operands(None, false, end, end + 1);
        let group = self.group();
        let pays = mem::replace(&mut group.pays, false) || group.kind == Kind::Paying;
        let expression = mem::replace(&mut group.expression, end + 1)..end;
        if pays && is_value {
            self.pay(expression);
        }
    }

    /// Ends the list of a `for`.
    fn end_items(&mut self, end: usize) {
        if let Some(start) = self.items.filter(|&start| start < end) {
            self.end_operands(None, false, end, end + 1);
            self.calls.push((start, if self.is_unpacked { READ } else { VISITED }, end - 1));
            self.items = Some(usize::MAX);
        }
    }

    /// Puts a call around an operand.
    fn pay(&mut self, operand: Range<usize>) {
        if !operand.is_empty() && !self.is_cheap(&operand) {
            self.calls.push((operand.start, READ, operand.end - 1));
        }
    }

    /// Whether an operand is a short literal.
    fn is_cheap(&self, operand: &Range<usize>) -> bool {
        let [token] = &self.tokens[operand.clone()] else { return false };
        match token.sort {
            Sort::Text => token.text.len() <= MAX_CHEAP,
            Sort::Number => true,
            Sort::Name => ["true", "false", "none", "True", "False", "None"].contains(&token.text),
            Sort::Sign => false,
        }
    }

    /// Whether a key is a short string, which names a field.
    fn is_field(&self, key: Range<usize>) -> bool {
        self.is_cheap(&key) && self.tokens[key.start].sort == Sort::Text
    }

    /// The code with the calls.
    fn text(&self, code: &str) -> String {
        let mut before = vec![Vec::new(); self.tokens.len()];
        let mut after = vec![0; self.tokens.len()];
        for &(first, name, last) in &self.calls {
            before[first].push(name);
            after[last] += 1;
        }
        let mut replaced: Vec<&str> = self.tokens.iter().map(|token| token.text).collect();
        for &(at, sign) in &self.signs {
            replaced[at] = sign;
        }
        let mut text = String::with_capacity(2 * code.len());
        let mut end = 0;
        for (n, token) in self.tokens.iter().enumerate() {
            text += &code[end..token.start];
            for name in before[n].iter().rev() {
                text += name;
                text.push('(');
            }
            text += replaced[n];
            text.extend(repeat_n(')', after[n]));
            end = token.start + token.text.len();
        }
        text + &code[end..]
    }
}
