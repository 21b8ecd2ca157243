//! The same settings in TOML: a group's entries as `[[Channel]]`, its default as `DefaultConsumer = "…"`.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::schema;
use super::tree::{Fault, MOST_DEEP, Node};

/// Parses the settings of a file to the tree of an EMA file.
pub(super) fn parse(text: &str) -> Result<Node, Fault> {
    let line = |at: usize| 1 + text.get(..at).unwrap_or(text).matches('\n').count();
    let table = DeTable::parse(text).map_err(|fault| {
        let at = fault.span().map_or(0, |span| span.start);
        Fault::new(line(at), format!("this is not TOML: {}", fault.message()), "")
    })?;
    let reading = Reading { line: &line };
    let mut root = Node::new("EmaConfig", 1);
    for child in reading.table(table.get_ref(), 0)? {
        match schema::group_of(&child.name) {
            // EMA's file has a list of entries in a group; TOML has no groups, so they are created here.
            Some(group) => group.put(&mut root, child),
            None if child.name == schema::GLOBAL => root.children.push(child),
            None => return Err(schema::no_such_group(&child)),
        }
    }
    Ok(root)
}

struct Reading<'l> {
    line: &'l dyn Fn(usize) -> usize,
}

impl Reading<'_> {
    /// Returns the settings of a table, in the order of their lines.
    fn table(&self, table: &DeTable<'_>, depth: usize) -> Result<Vec<Node>, Fault> {
        let mut nodes = Vec::new();
        for (key, value) in table {
            let line = (self.line)(key.span().start);
            if depth > MOST_DEEP {
                let what = format!("tables are nested deeper than {MOST_DEEP}");
                return Err(Fault::new(line, what, ""));
            }
            self.value(&mut nodes, key.get_ref(), line, value, depth)?;
        }
        nodes.sort_by_key(|node| node.line);
        Ok(nodes)
    }

    fn value(
        &self,
        nodes: &mut Vec<Node>,
        name: &str,
        line: usize,
        value: &Spanned<DeValue<'_>>,
        depth: usize,
    ) -> Result<(), Fault> {
        let mut node = Node::new(name, line);
        match value.get_ref() {
            DeValue::String(text) => node.value = Some(text.to_string()),
            DeValue::Integer(number) => node.value = Some(number.to_string()),
            DeValue::Boolean(flag) => node.value = Some(u8::from(*flag).to_string()),
            DeValue::Table(table) => {
                // A table of an array of tables has its own line, not the line where the name first occurs.
                node.line = (self.line)(value.span().start);
                node.children = self.table(table, depth + 1)?;
            }
            DeValue::Array(array) => {
                let is_texts = array.iter().all(|item| matches!(item.get_ref(), DeValue::String(_)));
                if is_texts && !array.is_empty() {
                    // A list of names, as EMA writes them.
                    let names: Vec<String> =
                        array.iter().filter_map(|item| item.get_ref().as_str().map(str::to_owned)).collect();
                    node.value = Some(names.join(", "));
                } else {
                    for item in array {
                        self.value(nodes, name, (self.line)(item.span().start), item, depth + 1)?;
                    }
                    return Ok(());
                }
            }
            DeValue::Float(_) | DeValue::Datetime(_) => {
                let what = format!("{name} is not a text, whole number, true or false, or table");
                return Err(Fault::new(line, what, ""));
            }
        }
        nodes.push(node);
        Ok(())
    }
}
