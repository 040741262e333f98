//! Reads haul.h, which is written so that this can: a comment `/** .. */` stands above what it is about, a prototype ends with `;`, a structure with `};`.

/// What the header has, in its order.
pub struct Header {
    pub groups: Vec<Group>,
}

/// Part of the header, and a page of the manual.
pub struct Group {
    pub name: String,
    /// In a few words.
    pub title: String,
    pub text: String,
    pub items: Vec<Item>,
}

/// A declaration with its comment.
pub struct Item {
    pub text: String,
    /// As it stands there, without comments.
    pub declaration: String,
    /// As it stands there, with comments.
    pub shown: String,
}

/// A prototype.
pub struct Function {
    pub name: String,
    pub returns: String,
    /// Types of the arguments, without names.
    pub arguments: Vec<String>,
}

impl Header {
    pub fn parse(text: &str) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        let mut comment = String::new();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            if let Some(start) = line.strip_prefix("/**") {
                let mut words = start.trim().to_owned();
                while !words.ends_with("*/") {
                    let Some(line) = lines.next() else { break };
                    words.push('\n');
                    words.push_str(
                        line.trim_start().strip_prefix("* ").unwrap_or(line.trim_start().trim_start_matches("*\n")).trim_end(),
                    );
                }
                let words = words.trim_end_matches("*/").replace("\n*\n", "\n\n").replace("\n*", "\n").trim().to_owned();
                match words.strip_prefix("@group ") {
                    Some(group) => {
                        let (first, text) = group.split_once('\n').unwrap_or((group, ""));
                        let (name, title) = first.split_once(": ").expect("a group's name and title");
                        let text = text.trim().to_owned();
                        groups.push(Group { name: name.into(), title: title.into(), text, items: Vec::new() });
                        comment.clear();
                    }
                    None => comment = words,
                }
                continue;
            }
            let Some(group) = groups.last_mut() else { continue };
            let is_declaration = ["int ", "int64_t ", "haul_t ", "const ", "uint64_t ", "typedef ", "struct ", "#define HAUL_"];
            if !is_declaration.iter().any(|start| line.starts_with(start)) {
                continue;
            }
            let mut shown = line.to_owned();
            while !is_whole(&shown) {
                let Some(line) = lines.next() else { break };
                shown.push('\n');
                shown.push_str(line);
            }
            group.items.push(Item { text: std::mem::take(&mut comment), declaration: plain(&shown), shown });
        }
        Self { groups }
    }

    fn items(&self) -> impl Iterator<Item = &Item> {
        self.groups.iter().flat_map(|group| &group.items)
    }

    /// All functions.
    pub fn functions(&self) -> impl Iterator<Item = Function> {
        self.items().filter_map(Item::function)
    }

    /// All structures with their fields.
    pub fn structures(&self) -> Vec<(String, Vec<String>)> {
        let structures = self.items().filter_map(|item| item.declaration.strip_prefix("struct ")?.split_once(" { "));
        let fields = |body: &str| {
            let fields = body.trim_end_matches("};").split(';').map(str::trim).filter(|field| !field.is_empty());
            fields.map(|field| field_name(field).to_owned()).collect()
        };
        structures.map(|(name, body)| (name.to_owned(), fields(body))).collect()
    }

    /// A line for each declaration, and nothing of the words.
    pub fn listing(&self) -> String {
        let mut lines: Vec<&str> = self.items().filter(|item| !item.is_version()).map(|item| item.declaration.as_str()).collect();
        lines.sort_unstable();
        lines.join("\n") + "\n"
    }
}

impl Item {
    /// A number that changes with each release, and breaks nothing.
    pub fn is_version(&self) -> bool {
        self.declaration.starts_with("#define HAUL_VERSION_")
    }

    /// The function, if it is one.
    pub fn function(&self) -> Option<Function> {
        let declaration = self.declaration.strip_suffix(");")?;
        if declaration.starts_with("typedef") || declaration.starts_with("struct ") {
            return None;
        }
        let (head, arguments) = declaration.split_once('(')?;
        let (returns, name) = split_name(head);
        let arguments =
            arguments.split(", ").filter(|argument| *argument != "void").map(|argument| split_name(argument).0.to_owned());
        Some(Function { name: name.into(), returns: returns.into(), arguments: arguments.collect() })
    }
}

/// Whether a declaration has its end.
fn is_whole(shown: &str) -> bool {
    let declaration = plain(shown);
    let is_structure = declaration.starts_with("struct ") && declaration.contains('{');
    declaration.starts_with("#define") || declaration.ends_with(if is_structure { "};" } else { ";" })
}

/// Without comments, and with single spaces.
fn plain(text: &str) -> String {
    let mut rest = text;
    let mut bare = String::new();
    while let Some((before, after)) = rest.split_once("/*") {
        bare.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    bare.push_str(rest);
    bare.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `const char *name` in type and name.
fn split_name(text: &str) -> (&str, &str) {
    let at = text.rfind([' ', '*']).map_or(0, |at| at + 1);
    let (kind, name) = text.split_at(at);
    (kind.trim(), name)
}

/// Of a field: `int (*progress)(void *, ..)` too.
fn field_name(field: &str) -> &str {
    match field.split_once("(*") {
        Some((_, rest)) => rest.split(')').next().unwrap_or(rest),
        None => split_name(field).1,
    }
}
