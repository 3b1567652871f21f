//! Names of classes, roots and arcs.
//!
//! An observer hands out a name for every root and arc that it visits, so a name must cost nothing
//! to make and little to copy: static text is borrowed, dynamic text is shared, and the index of an
//! element or of a stack slot stays a number until somebody prints it.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A piece of text that is cheap to copy. Two names are equal iff their text is.
#[derive(Clone)]
pub struct Name(Text);

#[derive(Clone)]
enum Text {
    Static(&'static str),
    Shared(Arc<str>),
}

impl Name {
    /// A name that is known when the program is compiled.
    pub const fn from_static(text: &'static str) -> Self {
        Name(Text::Static(text))
    }

    /// The text of the name.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Static(text) => text,
            Text::Shared(text) => text,
        }
    }
}

impl From<&'static str> for Name {
    fn from(text: &'static str) -> Self {
        Name::from_static(text)
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Name(Text::Shared(text.into()))
    }
}

impl From<Arc<str>> for Name {
    fn from(text: Arc<str>) -> Self {
        Name(Text::Shared(text))
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

// Equality, order and hash are those of the text, as `Borrow<str>` demands.
impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// The name of a root: `global 7`, `stack[3]`.
///
/// Two root names are equal iff they print the same, however they were made. That holds because
/// text that ends in an index is taken apart: `base` without an `index` never ends in one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RootName {
    base: Name,
    index: Option<usize>,
}

impl RootName {
    /// The root that is called `text`.
    pub fn new(text: impl Into<Name>) -> Self {
        let Name(text) = text.into();
        let parts = match &text {
            Text::Static(text) => split_index(text).map(|(base, index)| (base.into(), index)),
            Text::Shared(text) => {
                split_index(text).map(|(base, index)| (base.to_owned().into(), index))
            }
        };
        match parts {
            Some((base, index)) => RootName::indexed::<Name>(base, index),
            None => RootName {
                base: Name(text),
                index: None,
            },
        }
    }

    /// The root `base[index]`. Allocates nothing if `base` is static.
    pub fn indexed<T: Into<Name>>(base: T, index: usize) -> Self {
        RootName {
            base: base.into(),
            index: Some(index),
        }
    }
}

/// Splits `stack[3]` into `stack` and `3`, if the index is written as [`RootName`] would print it.
fn split_index(text: &str) -> Option<(&str, usize)> {
    let (base, digits) = text.strip_suffix(']')?.rsplit_once('[')?;
    let index: usize = digits.parse().ok()?;
    (index.to_string() == digits).then_some((base, index))
}

impl<T: Into<Name>> From<T> for RootName {
    fn from(text: T) -> Self {
        RootName::new(text)
    }
}

impl fmt::Display for RootName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            None => write!(f, "{}", self.base),
            Some(index) => write!(f, "{}[{index}]", self.base),
        }
    }
}

/// The name of an arc among the arcs of one node: `.left`, `[3]`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArcName {
    /// The arc in a named field.
    Field(Name),
    /// The arc in a numbered element.
    Element(usize),
}

impl From<&'static str> for ArcName {
    fn from(field: &'static str) -> Self {
        ArcName::Field(field.into())
    }
}

impl From<Name> for ArcName {
    fn from(field: Name) -> Self {
        ArcName::Field(field)
    }
}

impl From<usize> for ArcName {
    fn from(element: usize) -> Self {
        ArcName::Element(element)
    }
}

impl fmt::Display for ArcName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArcName::Field(name) => write!(f, ".{name}"),
            ArcName::Element(index) => write!(f, "[{index}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn names_are_their_text() {
        let shared = Name::from(String::from("Node"));
        assert_eq!(shared, Name::from_static("Node"));
        assert_eq!(BTreeMap::from([(shared, 1)]).get("Node"), Some(&1));
    }

    #[test]
    fn root_names_are_equal_iff_they_print_the_same() {
        assert_eq!(RootName::new("stack[3]"), RootName::indexed("stack", 3));
        assert_eq!(
            RootName::new(String::from("a[1][2]")),
            RootName::indexed("a[1]", 2)
        );
        for text in [
            "",
            "[",
            "]",
            "[]",
            "[3]",
            "stack[03]",
            "stack[+3]",
            "stack[-1]",
            "stack[99999999999999999999999]",
            "global 7",
            "é[1]",
        ] {
            assert_eq!(RootName::new(text).to_string(), text);
        }
        assert_ne!(RootName::new("stack[03]"), RootName::new("stack[3]"));
        assert!(RootName::new("stack[2]") < RootName::new("stack[10]"));
    }
}
