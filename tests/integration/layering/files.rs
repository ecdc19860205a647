//! Which file of the crate uses which, read from the sources.
//!
//! A file uses another when one of its `use` declarations or paths names an item that is defined there. A
//! re-export is followed to the definition, so that a parent that only gathers its children's names defines
//! nothing. Code for tests does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemUse, UseTree, Visibility};

/// The path of a module, such as `store::history`; the crate itself is the empty one.
pub type Module = Vec<String>;

/// What uses what, by name.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Groups of which each uses every other, directly or through others.
fn circles(uses: &Uses) -> BTreeSet<BTreeSet<String>> {
    let reached = |from: &String| {
        let mut reached = BTreeSet::new();
        let mut next: Vec<_> = uses[from].iter().collect();
        while let Some(used) = next.pop() {
            if reached.insert(used) {
                next.extend(&uses[used]);
            }
        }
        reached
    };
    let reached: BTreeMap<_, _> = uses.keys().map(|name| (name, reached(name))).collect();
    let circles = uses.keys().filter(|name| reached[name].contains(name)).map(|name| {
        let mutual = reached[name].iter().filter(|other| reached[*other].contains(name));
        mutual.map(|name| (*name).clone()).collect()
    });
    circles.collect()
}

/// The files of the crate, by the modules that they are.
pub struct Files(BTreeMap<Module, Names>);

/// The paths that one file names.
#[derive(Default)]
struct Names {
    used: Vec<Module>,
    /// What a name that is re-exported here stands for.
    exported: BTreeMap<String, Module>,
}

impl Files {
    /// Reads all below this directory, apart from its tests.
    pub fn read(root: &Path) -> Self {
        let mut files = BTreeMap::new();
        let mut directories = vec![root.to_owned()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).expect("a directory") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    if path != root.join("tests") {
                        directories.push(path);
                    }
                    continue;
                }
                if path.extension().is_none_or(|extension| extension != "rs") {
                    continue;
                }
                let module = path.strip_prefix(root).expect("below the root").with_extension("");
                let mut module: Module =
                    module.iter().map(|part| part.to_str().expect("a name").to_owned()).collect();
                if module == ["lib"] {
                    module.clear();
                }
                files.insert(module, Names::of(&std::fs::read_to_string(path).expect("a source")));
            }
        }
        Self(files)
    }

    /// From the text of each module.
    pub fn of(texts: &[(&str, &str)]) -> Self {
        let parts = |module: &str| module.split("::").map(str::to_owned).collect();
        Self(texts.iter().map(|(module, text)| (parts(module), Names::of(text))).collect())
    }

    /// Groups of files of which each uses every other, directly or through others.
    pub fn circles(&self) -> BTreeSet<BTreeSet<String>> {
        let uses = self.0.keys().map(|module| (module.join("::"), self.used_by(module)));
        circles(
            &uses.map(|(module, used)| (module, used.iter().map(|used| used.join("::")).collect())).collect(),
        )
    }

    /// The same of what stands side by side in a directory: files, and directories with all that is below
    /// them. The file of the directory itself does not count.
    pub fn circles_of_rooms(&self) -> BTreeSet<BTreeSet<String>> {
        let mut uses = BTreeMap::<Module, Uses>::new();
        for module in self.0.keys() {
            for used in self.used_by(module) {
                let common = module.iter().zip(used).take_while(|(one, other)| one == other).count();
                if let (Some(_), Some(_)) = (module.get(common), used.get(common)) {
                    let room = |module: &Module| module[..=common].join("::");
                    let beside = uses.entry(module[..common].to_vec()).or_default();
                    beside.entry(room(used)).or_default();
                    beside.entry(room(module)).or_default().insert(room(used));
                }
            }
        }
        uses.values().flat_map(circles).collect()
    }

    /// Directories with more than this many files and directories in them, a file and the directory of its
    /// name being one.
    pub fn crowded(&self, most: usize) -> BTreeMap<String, usize> {
        let mut siblings = BTreeMap::<&[String], BTreeSet<&String>>::new();
        for module in self.0.keys() {
            for at in 0..module.len() {
                siblings.entry(&module[..at]).or_default().insert(&module[at]);
            }
        }
        let crowded = siblings.into_iter().filter(|(_, beside)| beside.len() > most);
        crowded.map(|(room, beside)| (room.join("::"), beside.len())).collect()
    }

    fn used_by(&self, module: &Module) -> BTreeSet<&Module> {
        let used = self.0[module].used.iter().filter_map(|path| self.definition(module, path));
        used.filter(|used| *used != module).collect()
    }

    /// The file that defines what `path` names in `module`, if it is one of these.
    fn definition(&self, module: &Module, path: &[String]) -> Option<&Module> {
        let (mut at, mut rest) = match path.first()?.as_str() {
            "crate" => (Module::new(), &path[1..]),
            "self" => (module.clone(), &path[1..]),
            "super" => {
                let up = path.iter().take_while(|part| *part == "super").count();
                (module[..module.len().checked_sub(up)?].to_vec(), &path[up..])
            }
            first => {
                let child = [module.as_slice(), &[first.to_owned()]].concat();
                (self.0.contains_key(&child).then(|| module.clone())?, path)
            }
        };
        while let Some(next) = rest.first() {
            let child = [at.as_slice(), std::slice::from_ref(next)].concat();
            if !self.0.contains_key(&child) {
                break;
            }
            (at, rest) = (child, &rest[1..]);
        }
        let (found, names) = self.0.get_key_value(&at)?;
        let exported = rest.first().and_then(|name| names.exported.get(name));
        exported.and_then(|path| self.definition(&at, path)).or(Some(found))
    }
}

impl Names {
    fn of(text: &str) -> Self {
        let mut names = Self::default();
        names.visit_file(&syn::parse_file(text).expect("a source that compiles"));
        names
    }

    fn add(&mut self, tree: &UseTree, mut path: Module, exported: bool) {
        let name = match tree {
            UseTree::Path(tree) => {
                path.push(tree.ident.to_string());
                return self.add(&tree.tree, path, exported);
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.add(tree, path.clone(), exported));
            }
            UseTree::Glob(_) => return self.used.push(path),
            UseTree::Name(tree) => {
                if tree.ident != "self" {
                    path.push(tree.ident.to_string());
                }
                tree.ident.to_string()
            }
            UseTree::Rename(tree) => {
                path.push(tree.ident.to_string());
                tree.rename.to_string()
            }
        };
        if exported {
            self.exported.insert(name, path.clone());
        }
        self.used.push(path);
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !attributes.iter().any(is_for_tests) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.add(&item.tree, Module::new(), !matches!(item.vis, Visibility::Inherited));
    }

    /// `pub(in crate::store)` uses nothing.
    fn visit_visibility(&mut self, _visibility: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.used.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
}
