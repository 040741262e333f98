use std::path::Path;

use proptest::prelude::*;

use super::*;

fn names(text: &str) -> Vec<String> {
    HostSpec::list(text).unwrap_or_else(|error| panic!("{text}: {error}")).into_iter().map(|host| host.name).collect()
}

fn refused(text: &str) -> HostsError {
    HostSpec::list(text).err().unwrap_or_else(|| panic!("{text}: taken"))
}

#[test]
fn ranges_keep_their_zeros_and_their_order() {
    for (text, expected) in [
        ("a,b, c ,", "a b c"),
        ("node[01-03,20]", "node01 node02 node03 node20"),
        ("n[9-11]", "n9 n10 n11"),
        ("n[09-11]", "n09 n10 n11"),
        ("n[0-2]", "n0 n1 n2"),
        ("n[3,1]", "n3 n1"),
        ("r[1-2]n[1-2].example.org,x", "r1n1.example.org r1n2.example.org r2n1.example.org r2n2.example.org x"),
        ("[fe80::1]", "fe80::1"),
        ("[fe80::1%eth0],n[1,2]", "fe80::1%eth0 n1 n2"),
        ("b,a,b,a", "b a"),
    ] {
        assert_eq!(names(text).join(" "), expected, "{text}");
    }
}

#[test]
fn a_host_is_written_as_everywhere_in_haul() {
    let hosts = HostSpec::list("me@n[1-2]:/data,scp://you@far:2222/x,haul://d:7000/pub/a,haul://e,[::1]:y").expect("hosts");
    let shown: Vec<_> = hosts
        .iter()
        .map(|host| {
            (
                &*host.name,
                host.user.as_deref(),
                host.port,
                host.path.as_deref().map(Path::to_string_lossy).map(String::from),
                host.daemon,
            )
        })
        .collect();
    let path = |text: &str| Some(text.to_owned());
    assert_eq!(
        shown,
        [
            ("n1", Some("me"), None, path("/data"), false),
            ("n2", Some("me"), None, path("/data"), false),
            ("far", Some("you"), Some(2222), path("x"), false),
            ("d", None, Some(7000), path("pub/a"), true),
            ("e", None, None, None, true),
            ("::1", None, None, path("y"), false),
        ]
    );
    // A pattern in a path is nobody's range, and its comma divides nothing.
    let hosts = HostSpec::list("a:/data[1,2]").expect("one host");
    assert_eq!((hosts.len(), hosts[0].path.as_deref()), (1, Some(Path::new("/data[1,2]"))));
}

#[test]
fn hosts_of_one_name_are_told_apart() {
    assert_eq!(names("scp://a:1,scp://a:2,me@a,a,a:/x,a"), ["a", "a:2", "me@a", "a#2", "a:/x"]);
    assert_eq!(names("a:/x,a:/y,a:ram:"), ["a", "a:/y", "a:ram:"]);
}

#[test]
fn several_lists_are_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("hosts");
    std::fs::write(&file, "n2\nn3\n").expect("written");
    let hosts = HostSpec::lists(["n[1-2]", "n1,x", &format!("@{}", file.display())]).expect("hosts");
    assert_eq!(hosts.iter().map(|host| &*host.name).collect::<Vec<_>>(), ["n1", "n2", "x", "n3"]);
    assert!(matches!(HostSpec::lists(["a[1-4096]", "b"]), Err(HostsError::TooMany)));
}

#[test]
fn a_file_says_more_about_its_hosts() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("hosts");
    std::fs::write(
        &file,
        "# storage\n\nn[1-2] port=2222 path=/data limit=100M   # slow ones\nbig:/srv user=me data=10.0.0.7 name=big one=1\n",
    )
    .expect("written");
    let error = HostSpec::list(&format!("@{}", file.display())).expect_err("one=1 means nothing");
    assert!(
        error.to_string().ends_with("line 4: one=1: write user=, port=, path=, data=, name= or limit= behind a host"),
        "{error}"
    );
    std::fs::write(
        &file,
        "# storage\n\nn[1-2] port=2222 path=/data limit=100M   # slow ones\nbig:/srv user=me data=10.0.0.7 name=big1\n",
    )
    .expect("written");
    let hosts = HostSpec::file(&file).expect("hosts");
    assert_eq!(hosts.iter().map(|host| &*host.name).collect::<Vec<_>>(), ["n1", "n2", "big1"]);
    assert_eq!((hosts[1].port, hosts[1].limit), (Some(2222), Some(BitRate::from_bps(100_000_000))));
    assert_eq!((hosts[2].user.as_deref(), hosts[2].data.as_deref()), (Some("me"), Some("10.0.0.7")));
}

#[test]
fn what_schedulers_give_is_understood() {
    let slurm = HostSpec::allocated(|name| (name == "SLURM_JOB_NODELIST").then(|| "n[01-02],gpu7".into()));
    assert_eq!(slurm.expect("a list").expect("a job").len(), 3);
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("nodes");
    std::fs::write(&file, "b\nb\na\na\n").expect("written");
    let pbs = HostSpec::allocated(|name| (name == "PBS_NODEFILE").then(|| file.clone().into()));
    let names: Vec<_> = pbs.expect("a list").expect("a job").into_iter().map(|host| host.name).collect();
    assert_eq!(names, ["b", "a"], "a line for each slot, a host once");
    assert!(HostSpec::allocated(|_| None).expect("no error").is_none());
}

#[test]
fn what_makes_no_sense_is_refused() {
    for text in [
        "",
        " , ",
        "n[1-",
        "n1]",
        "n[a-b]",
        "n[]",
        "n[3-1]",
        "n[1--2]",
        "n[+1]",
        "-oProxyCommand=x",
        "n[1-2]/x",
        "a b",
        "n[0000000000000000000-1]",
    ] {
        refused(text);
    }
    assert!(matches!(refused(""), HostsError::None));
    assert!(matches!(refused("ftp://x/y"), HostsError::Item(OperandError::UnknownScheme(_))));
}

#[test]
fn a_list_of_a_billion_hosts_is_refused_before_it_is_made() {
    for text in ["n[0-999999999]", "a[1-4096],b", "a[1-100]b[1-100]", "a[1-1000]b[1-1000]c[1-1000]", "n[0-999999999999999999]"] {
        assert!(matches!(refused(text), HostsError::TooMany), "{text}");
    }
    assert_eq!(names("a[1-4096]").len(), MAX_HOSTS);
}

proptest! {
    /// What ranges stand for, against counting.
    #[test]
    fn an_expansion_is_what_counting_says(
        parts in prop::collection::vec((0_u64..500, 0_u64..8, 1_usize..5), 1..4),
        suffix in "[a-z]{0,3}",
    ) {
        let text: Vec<String> = parts.iter().map(|&(first, more, width)| format!("{first:0width$}-{}", first + more)).collect();
        let list = format!("n[{}]{suffix}", text.join(","));
        let mut expected: Vec<String> = Vec::new();
        for &(first, more, width) in &parts {
            for number in first..=first + more {
                // Without a zero in front there is nothing to keep.
                let width = if format!("{first:0width$}").starts_with('0') { width } else { 0 };
                let name = format!("n{number:0width$}{suffix}");
                if !expected.contains(&name) {
                    expected.push(name);
                }
            }
        }
        prop_assert_eq!(names(&list), expected);
    }

    #[test]
    fn no_text_is_more_than_it_may_be(text in "[a-c0-9@:/,\\[\\]=.-]{0,60}") {
        if let Ok(hosts) = HostSpec::list(&text) {
            prop_assert!(hosts.len() <= MAX_HOSTS);
            let mut names: Vec<_> = hosts.iter().map(|host| host.name.clone()).collect();
            names.sort();
            names.dedup();
            prop_assert_eq!(names.len(), hosts.len());
        }
    }
}
