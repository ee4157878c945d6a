//! The user that a command runs as.

use std::path::Path;

/// Where users have their names.
pub(crate) const PASSWD: &str = "/etc/passwd";

/// A user and its group. Other groups of the server are not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl User {
    /// Reads `UID:GID`, or the name of a user in a file like `/etc/passwd`.
    ///
    /// # Errors
    /// When it is neither, or the user is root, whom no limit holds.
    pub(crate) fn find(text: &str, passwd: &Path) -> Result<Self, String> {
        let numbers = text.split_once(':').and_then(|(uid, gid)| Some((uid.parse().ok()?, gid.parse().ok()?)));
        let named = || std::fs::read_to_string(passwd).ok()?.lines().find_map(|line| entry(line, text));
        match numbers.or_else(named) {
            None => Err(format!("expected UID:GID or the name of a user in {}, got {text:?}", passwd.display())),
            Some((0, _)) => Err("a command of the user root could do everything; name another user".to_owned()),
            Some((uid, gid)) => Ok(Self { uid, gid }),
        }
    }
}

/// The numbers in a line `name:password:uid:gid:…`, if it is about this user.
fn entry(line: &str, name: &str) -> Option<(u32, u32)> {
    let mut fields = line.split(':');
    let is_named = fields.next() == Some(name) && !name.is_empty();
    let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
    is_named.then_some((uid, gid))
}

#[cfg(test)]
mod tests {
    use super::User;

    #[test]
    fn a_user_is_two_numbers_or_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let passwd = folder.path().join("passwd");
        std::fs::write(&passwd, "root:x:0:0:root:/root:/bin/sh\nbroken\nagent:x:1001:1002::/:/bin/false\n").unwrap();
        assert_eq!(User::find("5:6", &passwd), Ok(User { uid: 5, gid: 6 }));
        assert_eq!(User::find("agent", &passwd), Ok(User { uid: 1001, gid: 1002 }));
        for wrong in ["", "nobody-here", "5", "5:", "-1:5", "broken"] {
            assert!(User::find(wrong, &passwd).unwrap_err().starts_with("expected UID:GID"), "{wrong}");
        }
        for root in ["root", "0:5"] {
            assert!(User::find(root, &passwd).unwrap_err().contains("could do everything"), "{root}");
        }
    }
}
