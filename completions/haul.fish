# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_haul_global_optspecs
    string join \n h/help V/version
end

function __fish_haul_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_haul_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_haul_using_subcommand
    set -l cmd (__fish_haul_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c haul -n "__fish_haul_needs_command" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_needs_command" -s V -l version -d 'Print version'
complete -c haul -n "__fish_haul_needs_command" -f -a "cp" -d 'Copy files and trees between hosts'
complete -c haul -n "__fish_haul_needs_command" -f -a "ctl" -d 'List the copies and other transfers that run here for this user, and tell them to go slower, wait or stop'
complete -c haul -n "__fish_haul_needs_command" -f -a "fleet" -d 'Copy from and to many storage servers at once'
complete -c haul -n "__fish_haul_needs_command" -f -a "pipe" -d 'Connect standard input and output to a program on another host'
complete -c haul -n "__fish_haul_needs_command" -f -a "proxy" -d 'Carry TCP connections across a long network'
complete -c haul -n "__fish_haul_needs_command" -f -a "rsync" -d 'Run rsync with haul as its remote shell'
complete -c haul -n "__fish_haul_needs_command" -f -a "rsh" -d 'Run a command on another host, as ssh would, with its streams over haul'
complete -c haul -n "__fish_haul_needs_command" -f -a "serve" -d 'Run the daemon: export directories to those whose keys are authorised'
complete -c haul -n "__fish_haul_needs_command" -f -a "key" -d 'Show and manage keys: this machine\'s own, trusted hosts, authorised users'
complete -c haul -n "__fish_haul_needs_command" -f -a "config" -d 'Show what the configuration file says, and what holds for a host'
complete -c haul -n "__fish_haul_needs_command" -f -a "perf" -d 'Measure a path, memory to memory'
complete -c haul -n "__fish_haul_needs_command" -f -a "tcp" -d 'Congestion control for the kernel\'s own TCP: programs that know nothing of haul use it'
complete -c haul -n "__fish_haul_needs_command" -f -a "pace" -d 'Even distances between the packets of programs that know nothing of haul'
complete -c haul -n "__fish_haul_needs_command" -f -a "trace" -d 'What connections did, from a trace that HAUL_TRACE wrote'
complete -c haul -n "__fish_haul_needs_command" -f -a "lab" -d 'Emulate a wide area network on this machine'
complete -c haul -n "__fish_haul_needs_command" -f -a "remote" -d 'The far side of a command that goes through ssh; to confine a login to it'
complete -c haul -n "__fish_haul_using_subcommand cp" -l exclude -d 'Leave out what matches PATTERN, a line of a .gitignore: \'*.o\', \'build/\' (only directories), \'/tree/tmp\' (from the top of the source tree on). What is in a directory that is left out is not looked at; of several patterns the last that matches decides' -r
complete -c haul -n "__fish_haul_using_subcommand cp" -l exclude-from -d 'Leave out what matches a pattern in FILE, one a line as in a .gitignore; --exclude comes after them' -r -F
complete -c haul -n "__fish_haul_using_subcommand cp" -l filter-from -d 'Leave out by the rules in FILE, `- PATTERN` or `+ PATTERN` a line, as a merge file of rsync\'s: the first that matches decides. Patterns given otherwise count more' -r -F
complete -c haul -n "__fish_haul_using_subcommand cp" -l include -d 'Copy what matches PATTERN although it is excluded, unless its directory is; comes after all that excludes' -r
complete -c haul -n "__fish_haul_using_subcommand cp" -l changed -d 'What becomes of a file that is written to while it is copied' -r -f -a "take\t'Copy it up to the length that it had at the start, as scp and rsync do, and say so, with the blocks that were rewritten after they had been read; the exit status is still 0. The default'
fail\t'Do not copy it; exit status 1'
retry\t'Copy it again from its start, once; if it changes again, do not copy it'"
complete -c haul -n "__fish_haul_using_subcommand cp" -l verify -d 'What is checked against the BLAKE3 hashes of what was read at the source' -r -f -a "arrival\t'What arrives, in memory, just before it is written; what the disk then keeps is not looked at. The default'
read-back\t'That, and what the target\'s disk gives back after the sync, before the file gets its name: past the page cache (O_DIRECT), or where its file system cannot do that, through the cache after it was told to drop the file; the summary says which. A file that differs is named and does not get its name; exit status 1'"
complete -c haul -n "__fish_haul_using_subcommand cp" -l files-from -d 'Copy only what FILE lists, a path below the one source a line (`-`: standard input). The source is a directory, and what is listed keeps its path in the target; of a directory all that is in it comes only with -r. Names that lead out of the source (`..`) are refused' -r -F
complete -c haul -n "__fish_haul_using_subcommand cp" -l max-delete -d 'Remove nothing if more than NUMBER names would go' -r
complete -c haul -n "__fish_haul_using_subcommand cp" -l manifest -d 'Write the checksums of all that the copy brings, or finds there already, to FILE, for `b3sum --check` or `sha256sum --check` in the target. The files are read here once more for it' -r -F
complete -c haul -n "__fish_haul_using_subcommand cp" -l manifest-hash -d 'What the checksums in --manifest are' -r -f -a "blake3\t'For `b3sum`. The default'
sha256\t'For `sha256sum`'"
complete -c haul -n "__fish_haul_using_subcommand cp" -l log-file -d 'Append what happens to FILE, a line each with its time: files, what was removed, problems, the end' -r -F
complete -c haul -n "__fish_haul_using_subcommand cp" -l retries -d 'Try again so often, after 1 s, 2 s, 4 s and so on up to a minute, where the connection was lost or did not come about; each time goes on where the last one was' -r
complete -c haul -n "__fish_haul_using_subcommand cp" -l compress -d 'Compress (zstd) blocks on their way that become smaller by it, while the link is what is waited for and no processor. A far side that is too old for this takes and gives them as they are' -r -f -a "auto\t'Where it gains'"
complete -c haul -n "__fish_haul_using_subcommand cp" -l on-success -d 'Run CMD by sh(1) once all is copied and verified as asked. HAUL_FILES, HAUL_BYTES, HAUL_TARGET and HAUL_STATUS are in its environment; where it fails, the exit status is 1. Not after a dry run' -r -f -a "(__fish_complete_command)"
complete -c haul -n "__fish_haul_using_subcommand cp" -l on-failure -d 'Run CMD by sh(1) where the copy ended otherwise: HAUL_STATUS is the exit status, HAUL_ERROR the first error that ended it' -r -f -a "(__fish_complete_command)"
complete -c haul -n "__fish_haul_using_subcommand cp" -l timeout -d 'rsync\'s word for --dead-after' -r
complete -c haul -n "__fish_haul_using_subcommand cp" -l reconnect -d 'Connect again to a daemon that was restarted, or is gone, until so long after it was last heard, and go on; 0: never. The default is the time after which silence ends a connection: what an outage does not end, a restart does not end either' -r
complete -c haul -n "__fish_haul_using_subcommand cp" -l list-interrupted -d 'Show the interrupted copies that are kept in a directory, here or on another host' -r -F
complete -c haul -n "__fish_haul_using_subcommand cp" -l discard -d 'Remove what interrupted copies have kept: all in DIR, here or on another host, or that of one copy, whose hidden directory it is' -r -F
complete -c haul -n "__fish_haul_using_subcommand cp" -l dead-after -d 'Give the connection up when nothing has come from the other side for so long; of both sides the shorter time counts' -r
complete -c haul -n "__fish_haul_using_subcommand cp" -s l -l limit -d 'Limit the rate; a bare number is in Kbit/s, as with scp. By the time of day: `08:00-18:00=100M,otherwise=1G`, local time, over midnight too; the first window that it is in counts, and `none` is no limit' -r
complete -c haul -n "__fish_haul_using_subcommand cp" -l mode -d 'How to share the path with others: fair, quickstart, modest, aggressive, reno, cubic, highspeed, scalable, bic, fast, udt, bbr, ledbat, lia, olia, balia or fixed:RATE. The default is fair' -r -f -a "fair\t''
quickstart\t''
modest\t''
aggressive\t''
reno\t''
cubic\t''
highspeed\t''
scalable\t''
bic\t''
fast\t''
udt\t''
bbr\t''
ledbat\t''
lia\t''
olia\t''
balia\t''"
complete -c haul -n "__fish_haul_using_subcommand cp" -l paths -d 'Send from so many ports to the far side\'s one, 1 to 8: for networks that send flows different ways. Those that share a bottleneck are one flow to others' -r
complete -c haul -n "__fish_haul_using_subcommand cp" -l via -d 'Leave by these interfaces or addresses, a path for each, and follow them as they come and go: eth0, 192.0.2.7, or all. eth1:backup carries data only while no other way works; wwan0:metered=BYTES too, and no more than that. Over UDP alone' -r
complete -c haul -n "__fish_haul_using_subcommand cp" -l udp-port -d 'UDP port or ports that the far side may use, where a firewall opens only those' -r
complete -c haul -n "__fish_haul_using_subcommand cp" -l trace -d 'Say at the end where the time went: login, start-up, bulk, last block and so on. To a file too: the parts where OUT ends in .json; what this side\'s connection did, with the parts, as a picture in .svg or .png; a log of it in .qlog' -r -F
complete -c haul -n "__fish_haul_using_subcommand cp" -l state -d 'Directory of the identity key and the known hosts, for haul:// targets' -r -F
complete -c haul -n "__fish_haul_using_subcommand cp" -s P -d 'Port of the ssh server' -r
complete -c haul -n "__fish_haul_using_subcommand cp" -s i -d 'File with the private key to log in with' -r -F
complete -c haul -n "__fish_haul_using_subcommand cp" -s J -d 'Log in by way of another host' -r
complete -c haul -n "__fish_haul_using_subcommand cp" -s F -d 'Configuration file for ssh' -r -F
complete -c haul -n "__fish_haul_using_subcommand cp" -s o -d 'Option in the form of ssh_config(5)' -r
complete -c haul -n "__fish_haul_using_subcommand cp" -s S -d 'Program to use in place of ssh' -r
complete -c haul -n "__fish_haul_using_subcommand cp" -l remote-haul -d 'haul\'s path on the far side, where its PATH does not have it' -r
complete -c haul -n "__fish_haul_using_subcommand cp" -l transport -d 'What carries the data: udp, tcp, ssh (its own connection), or auto: the first of these that passes' -r
complete -c haul -n "__fish_haul_using_subcommand cp" -l relay -d '`haul serve --relay` by which the two sides meet where NATs let UDP in at neither, and which forwards what passes no other way' -r
complete -c haul -n "__fish_haul_using_subcommand cp" -l bootstrap -d 'Where the far side has no haul of this version, send it one over ssh: into ~/.cache/haul there to stay, or to be gone at once with `once`' -r -f -a "keep\t'Until somebody removes it'
once\t'It is removed before it has done anything'"
complete -c haul -n "__fish_haul_using_subcommand cp" -l bootstrap-from -d 'The static haul to send, or a directory with one for each kind of machine' -r -F
complete -c haul -n "__fish_haul_using_subcommand cp" -s c -d 'Ciphers of the login (ssh\'s -c); what encrypts the data is not chosen' -r
complete -c haul -n "__fish_haul_using_subcommand cp" -s r -l recursive -d 'Copy directories with everything in them; symbolic links are copied as links'
complete -c haul -n "__fish_haul_using_subcommand cp" -s p -l preserve -d 'Keep modification times (to the nanosecond) and exact modes; owners too, where the target is written as root'
complete -c haul -n "__fish_haul_using_subcommand cp" -l update -d 'Keep files that are newer at the target, as cp and rsync -u do; one of the same time is copied if its size differs. Sets times, as -p does'
complete -c haul -n "__fish_haul_using_subcommand cp" -l skip-same -d 'Skip files that the target already has with the same size and modification time, whichever is newer otherwise; rsync\'s quick check. Sets times, as -p does'
complete -c haul -n "__fish_haul_using_subcommand cp" -l no-verify -d 'Hash nothing and check nothing'
complete -c haul -n "__fish_haul_using_subcommand cp" -l no-resume -d 'Start over instead of going on with what an interrupted copy left behind'
complete -c haul -n "__fish_haul_using_subcommand cp" -l size-only -d 'Skip files that the target already has with the same size, whatever their times'
complete -c haul -n "__fish_haul_using_subcommand cp" -l checksum -d 'Skip files that the target already has with the same content, whatever their times: both sides read and hash (BLAKE3) what has the same size'
complete -c haul -n "__fish_haul_using_subcommand cp" -l compare -d 'Copy nothing: print what differs at the target in content (or with --size-only in size), and exit with 1 if anything does'
complete -c haul -n "__fish_haul_using_subcommand cp" -s 0 -l from0 -d 'The paths in --files-from are divided by NUL, as find -print0 writes them'
complete -c haul -n "__fish_haul_using_subcommand cp" -l delete -d 'Remove in the copied directories of the target what their source does not have, once all has arrived. What is excluded stays; nothing is removed where the source could not be read whole. Try it with -n first'
complete -c haul -n "__fish_haul_using_subcommand cp" -s X -l xattrs -d 'Keep extended attributes, as rsync does: those of `user`, and where root copies to root those of `security` and `trusted`. Others at the target go, on files too that are skipped as the same. Who may not set one leaves it out and says so'
complete -c haul -n "__fish_haul_using_subcommand cp" -s A -l acls -d 'Keep ACLs (POSIX), and with them modes, which they are a part of; rsync\'s letter: to scp it means an agent, which a copy here has no use for. Users and groups are numbers, as with -p'
complete -c haul -n "__fish_haul_using_subcommand cp" -s L -l copy-links -d 'Copy what symbolic links below the sources lead to, not the links'
complete -c haul -n "__fish_haul_using_subcommand cp" -s n -l dry-run -d 'Print what would be done, on standard output, and do nothing: nothing is written on either side'
complete -c haul -n "__fish_haul_using_subcommand cp" -s q -l quiet -d 'Print nothing but errors'
complete -c haul -n "__fish_haul_using_subcommand cp" -s v -l verbose -d 'Say more; twice, and ssh says more too'
complete -c haul -n "__fish_haul_using_subcommand cp" -l json -d 'Print events as lines of JSON on standard output'
complete -c haul -n "__fish_haul_using_subcommand cp" -s 4 -d 'Use IPv4 only'
complete -c haul -n "__fish_haul_using_subcommand cp" -s 6 -d 'Use IPv6 only'
complete -c haul -n "__fish_haul_using_subcommand cp" -s B -d 'Ask for nothing: no password, no passphrase'
complete -c haul -n "__fish_haul_using_subcommand cp" -s C -d 'Compress the login (ssh\'s -C); data is sent as it is'
complete -c haul -n "__fish_haul_using_subcommand cp" -s O -s s -s T -d 'Nothing: protocols of scp, and a check of names that is always made'
complete -c haul -n "__fish_haul_using_subcommand cp" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c haul -n "__fish_haul_using_subcommand ctl; and not __fish_seen_subcommand_from list limit mode pause resume stop" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand ctl; and not __fish_seen_subcommand_from list limit mode pause resume stop" -f -a "list" -d 'Show what runs'
complete -c haul -n "__fish_haul_using_subcommand ctl; and not __fish_seen_subcommand_from list limit mode pause resume stop" -f -a "limit" -d 'Change how fast a command may go; a bare number is in Kbit/s, `none` lifts the limit'
complete -c haul -n "__fish_haul_using_subcommand ctl; and not __fish_seen_subcommand_from list limit mode pause resume stop" -f -a "mode" -d 'Change how a copy that sends shares the path with others, the --mode of haul-cp(1)'
complete -c haul -n "__fish_haul_using_subcommand ctl; and not __fish_seen_subcommand_from list limit mode pause resume stop" -f -a "pause" -d 'Let a copy wait; its connection stays'
complete -c haul -n "__fish_haul_using_subcommand ctl; and not __fish_seen_subcommand_from list limit mode pause resume stop" -f -a "resume" -d 'Let a copy go on'
complete -c haul -n "__fish_haul_using_subcommand ctl; and not __fish_seen_subcommand_from list limit mode pause resume stop" -f -a "stop" -d 'End a command as an interrupt does: what a copy or a fleet has brought is kept, and the same command goes on from there'
complete -c haul -n "__fish_haul_using_subcommand ctl; and __fish_seen_subcommand_from list" -l json -d 'As lines of JSON'
complete -c haul -n "__fish_haul_using_subcommand ctl; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand ctl; and __fish_seen_subcommand_from limit" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand ctl; and __fish_seen_subcommand_from mode" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand ctl; and __fish_seen_subcommand_from pause" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand ctl; and __fish_seen_subcommand_from resume" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand ctl; and __fish_seen_subcommand_from stop" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand fleet; and not __fish_seen_subcommand_from get put up down list status report" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand fleet; and not __fish_seen_subcommand_from get put up down list status report" -f -a "get" -d 'Copy from the servers to this machine'
complete -c haul -n "__fish_haul_using_subcommand fleet; and not __fish_seen_subcommand_from get put up down list status report" -f -a "put" -d 'Copy from this machine to the servers, spread over them'
complete -c haul -n "__fish_haul_using_subcommand fleet; and not __fish_seen_subcommand_from get put up down list status report" -f -a "up" -d 'Start servers that stay up for many jobs'
complete -c haul -n "__fish_haul_using_subcommand fleet; and not __fish_seen_subcommand_from get put up down list status report" -f -a "down" -d 'End the servers that `up` has started'
complete -c haul -n "__fish_haul_using_subcommand fleet; and not __fish_seen_subcommand_from get put up down list status report" -f -a "list" -d 'Show which fleets are up'
complete -c haul -n "__fish_haul_using_subcommand fleet; and not __fish_seen_subcommand_from get put up down list status report" -f -a "status" -d 'Show how the servers are: load, memory, room, distance; of a fleet that is up, also what they do'
complete -c haul -n "__fish_haul_using_subcommand fleet; and not __fish_seen_subcommand_from get put up down list status report" -f -a "report" -d 'Make tables, charts and a page of what `--log` has written'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l policy -d 'How work is dealt out' -r -f -a "dynamic\t'Servers get more to do when they have little left: ranges of files, from the fast ones more. The default'
round-robin\t'Whole files, dealt to their holders in turn before anything is sent'"
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l replicas-by -d 'When files of one name on several servers are replicas' -r -f -a "time\t'Where size and modification time are equal. The default'
hash\t'Where the content is: of files whose sizes are equal and whose times differ, the servers compute BLAKE3 before anything is fetched'"
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l exclude -d 'Leave out what matches PATTERN, a line of a .gitignore: \'*.o\', \'build/\' (only directories), \'/tree/tmp\' (from the top of the source tree on). What is in a directory that is left out is not looked at; of several patterns the last that matches decides' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l exclude-from -d 'Leave out what matches a pattern in FILE, one a line as in a .gitignore; --exclude comes after them' -r -F
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l filter-from -d 'Leave out by the rules in FILE, `- PATTERN` or `+ PATTERN` a line, as a merge file of rsync\'s: the first that matches decides. Patterns given otherwise count more' -r -F
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l include -d 'Copy what matches PATTERN although it is excluded, unless its directory is; comes after all that excludes' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l changed -d 'What becomes of a file that is written to while it is copied' -r -f -a "take\t'Copy it up to the length that it had at the start, as scp and rsync do, and say so, with the blocks that were rewritten after they had been read; the exit status is still 0. The default'
fail\t'Do not copy it; exit status 1'
retry\t'Copy it again from its start, once; if it changes again, do not copy it'"
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l verify -d 'What is checked against the BLAKE3 hashes of what was read at the source' -r -f -a "arrival\t'What arrives, in memory, just before it is written; what the disk then keeps is not looked at. The default'
read-back\t'That, and what the target\'s disk gives back after the sync, before the file gets its name: past the page cache (O_DIRECT), or where its file system cannot do that, through the cache after it was told to drop the file; the summary says which. A file that differs is named and does not get its name; exit status 1'"
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -s l -l limit -d 'Limit the rate of all servers together; a bare number is in Kbit/s, as with scp' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l limit-each -d 'Limit the rate of each server' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l pause -d 'Rest so long after each file, on each server; then a server has one file at a time' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l start-at -d 'Transfer nothing before this time' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l mode -d 'How to share the path with others: fair, quickstart, modest, aggressive, reno, cubic, highspeed, scalable, bic, fast, udt, bbr, ledbat, lia, olia, balia or fixed:RATE. The default is fair' -r -f -a "fair\t''
quickstart\t''
modest\t''
aggressive\t''
reno\t''
cubic\t''
highspeed\t''
scalable\t''
bic\t''
fast\t''
udt\t''
bbr\t''
ledbat\t''
lia\t''
olia\t''
balia\t''"
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l log -d 'Write what each server did, and when, into a new directory in this one: see haul-fleet-report(1)' -r -F
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l name -d 'Those of a fleet that `haul fleet up` has started; how they are reached was said there, and so was --mode' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -s H -l hosts -d 'The servers: names with commas between them, `node[01-13,20]`, or `@FILE` with one on each line; as ssh knows them, or `haul://host[:port]`. Without it, those of the Slurm or PBS job that this runs in' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l start -d 'How to start them: `ssh-direct` (this machine logs in to each; the default), `ssh` (it logs in to the first, and that one to the others), `mpirun`, `srun` (inside a Slurm job), `daemon` (they run already). Those of the middle three call this machine back' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l launcher -d 'The `mpirun` or `srun` to call, where it is not found by its name' -r -f -a "(__fish_complete_command)"
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l launcher-arg -d 'A word for `mpirun` or `srun` before haul\'s own; several times, several words' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l launcher-on -d 'Call `mpirun` or `srun` on this host, by ssh, and not here' -r -f -a "(__fish_print_hostnames)"
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l call-back -d 'Address of this machine that the servers call, where it is not the one that it reaches them from; several times, several addresses' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l timeout -d 'Leave out a server that has not come up within so long, and go on with the others' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l udp-port -d 'UDP port or ports for the data, where a firewall opens only those' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l max-packet -d 'The largest packet to send and to take, in bytes behind the UDP header; without it the largest that gets through is found, up to 8972' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l memory -d 'Memory of this machine for each connection, at most: for what has come and is not written, and for what was sent and is not acknowledged; 2 MiB (two blocks) and more [default: 1 GiB]' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l state -d 'Directory of the identity key and the known hosts, for haul:// servers' -r -F
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l dead-after -d 'Give the connection up when nothing has come from the other side for so long; of both sides the shorter time counts' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -s P -d 'Port of the ssh server' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -s i -d 'File with the private key to log in with' -r -F
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -s J -d 'Log in by way of another host' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -s F -d 'Configuration file for ssh' -r -F
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -s o -d 'Option in the form of ssh_config(5)' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -s S -d 'Program to use in place of ssh' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l remote-haul -d 'haul\'s path on the far side, where its PATH does not have it' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l transport -d 'What carries the data: udp, tcp, ssh (its own connection), or auto: the first of these that passes' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l relay -d '`haul serve --relay` by which the two sides meet where NATs let UDP in at neither, and which forwards what passes no other way' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l wait-for-all -d 'Wait until all servers have said what they have: two contents under one name are then found before anything is written. Else files come from the first server that has said it, while others are still on their way'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -s r -l recursive -d 'Copy directories with everything in them; symbolic links are copied as links'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -s p -l preserve -d 'Keep modification times (to the nanosecond) and exact modes; owners too, where the target is written as root'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l update -d 'Keep files that are newer at the target, as cp and rsync -u do; one of the same time is copied if its size differs. Sets times, as -p does'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l skip-same -d 'Skip files that the target already has with the same size and modification time, whichever is newer otherwise; rsync\'s quick check. Sets times, as -p does'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l no-verify -d 'Hash nothing and check nothing'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l no-resume -d 'Start over instead of going on with what an interrupted copy left behind'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -s q -l quiet -d 'Print nothing but errors'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -s v -l verbose -d 'Say more; twice, and ssh says more too'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l json -d 'Print events as lines of JSON on standard output'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -l dial-out -d 'Have the servers wait for this machine to call them, where they cannot call it'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -s 4 -d 'Use IPv4 only'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -s 6 -d 'Use IPv6 only'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from get" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l replicas -d 'On how many servers each file is to be' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l policy -d 'Which server gets which file' -r -f -a "dynamic\t'The next file goes to a server that has little left to take. The default'
round-robin\t'Files go to the servers in turn'
space\t'More files go to where there is more room'"
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l exclude -d 'Leave out what matches PATTERN, a line of a .gitignore: \'*.o\', \'build/\' (only directories), \'/tree/tmp\' (from the top of the source tree on). What is in a directory that is left out is not looked at; of several patterns the last that matches decides' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l exclude-from -d 'Leave out what matches a pattern in FILE, one a line as in a .gitignore; --exclude comes after them' -r -F
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l filter-from -d 'Leave out by the rules in FILE, `- PATTERN` or `+ PATTERN` a line, as a merge file of rsync\'s: the first that matches decides. Patterns given otherwise count more' -r -F
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l include -d 'Copy what matches PATTERN although it is excluded, unless its directory is; comes after all that excludes' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l changed -d 'What becomes of a file that is written to while it is copied' -r -f -a "take\t'Copy it up to the length that it had at the start, as scp and rsync do, and say so, with the blocks that were rewritten after they had been read; the exit status is still 0. The default'
fail\t'Do not copy it; exit status 1'
retry\t'Copy it again from its start, once; if it changes again, do not copy it'"
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l verify -d 'What is checked against the BLAKE3 hashes of what was read at the source' -r -f -a "arrival\t'What arrives, in memory, just before it is written; what the disk then keeps is not looked at. The default'
read-back\t'That, and what the target\'s disk gives back after the sync, before the file gets its name: past the page cache (O_DIRECT), or where its file system cannot do that, through the cache after it was told to drop the file; the summary says which. A file that differs is named and does not get its name; exit status 1'"
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -s l -l limit -d 'Limit the rate of all servers together; a bare number is in Kbit/s, as with scp' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l limit-each -d 'Limit the rate of each server' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l pause -d 'Rest so long after each file, on each server; then a server has one file at a time' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l start-at -d 'Transfer nothing before this time' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l mode -d 'How to share the path with others: fair, quickstart, modest, aggressive, reno, cubic, highspeed, scalable, bic, fast, udt, bbr, ledbat, lia, olia, balia or fixed:RATE. The default is fair' -r -f -a "fair\t''
quickstart\t''
modest\t''
aggressive\t''
reno\t''
cubic\t''
highspeed\t''
scalable\t''
bic\t''
fast\t''
udt\t''
bbr\t''
ledbat\t''
lia\t''
olia\t''
balia\t''"
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l log -d 'Write what each server did, and when, into a new directory in this one: see haul-fleet-report(1)' -r -F
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l name -d 'Those of a fleet that `haul fleet up` has started; how they are reached was said there, and so was --mode' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -s H -l hosts -d 'The servers: names with commas between them, `node[01-13,20]`, or `@FILE` with one on each line; as ssh knows them, or `haul://host[:port]`. Without it, those of the Slurm or PBS job that this runs in' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l start -d 'How to start them: `ssh-direct` (this machine logs in to each; the default), `ssh` (it logs in to the first, and that one to the others), `mpirun`, `srun` (inside a Slurm job), `daemon` (they run already). Those of the middle three call this machine back' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l launcher -d 'The `mpirun` or `srun` to call, where it is not found by its name' -r -f -a "(__fish_complete_command)"
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l launcher-arg -d 'A word for `mpirun` or `srun` before haul\'s own; several times, several words' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l launcher-on -d 'Call `mpirun` or `srun` on this host, by ssh, and not here' -r -f -a "(__fish_print_hostnames)"
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l call-back -d 'Address of this machine that the servers call, where it is not the one that it reaches them from; several times, several addresses' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l timeout -d 'Leave out a server that has not come up within so long, and go on with the others' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l udp-port -d 'UDP port or ports for the data, where a firewall opens only those' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l max-packet -d 'The largest packet to send and to take, in bytes behind the UDP header; without it the largest that gets through is found, up to 8972' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l memory -d 'Memory of this machine for each connection, at most: for what has come and is not written, and for what was sent and is not acknowledged; 2 MiB (two blocks) and more [default: 1 GiB]' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l state -d 'Directory of the identity key and the known hosts, for haul:// servers' -r -F
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l dead-after -d 'Give the connection up when nothing has come from the other side for so long; of both sides the shorter time counts' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -s P -d 'Port of the ssh server' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -s i -d 'File with the private key to log in with' -r -F
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -s J -d 'Log in by way of another host' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -s F -d 'Configuration file for ssh' -r -F
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -s o -d 'Option in the form of ssh_config(5)' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -s S -d 'Program to use in place of ssh' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l remote-haul -d 'haul\'s path on the far side, where its PATH does not have it' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l transport -d 'What carries the data: udp, tcp, ssh (its own connection), or auto: the first of these that passes' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l relay -d '`haul serve --relay` by which the two sides meet where NATs let UDP in at neither, and which forwards what passes no other way' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -s r -l recursive -d 'Copy directories with everything in them; symbolic links are copied as links'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -s p -l preserve -d 'Keep modification times (to the nanosecond) and exact modes; owners too, where the target is written as root'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l update -d 'Keep files that are newer at the target, as cp and rsync -u do; one of the same time is copied if its size differs. Sets times, as -p does'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l skip-same -d 'Skip files that the target already has with the same size and modification time, whichever is newer otherwise; rsync\'s quick check. Sets times, as -p does'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l no-verify -d 'Hash nothing and check nothing'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l no-resume -d 'Start over instead of going on with what an interrupted copy left behind'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -s q -l quiet -d 'Print nothing but errors'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -s v -l verbose -d 'Say more; twice, and ssh says more too'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l json -d 'Print events as lines of JSON on standard output'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -l dial-out -d 'Have the servers wait for this machine to call them, where they cannot call it'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -s 4 -d 'Use IPv4 only'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -s 6 -d 'Use IPv6 only'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from put" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -l name -d 'What the fleet is called: letters, digits, `.`, `_`, `-`' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -l log-file -d 'Where the background process writes what happens [default: NAME.log beside its socket]' -r -F
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -l mode -d 'How to share the path with others: fair, quickstart, modest, aggressive, reno, cubic, highspeed, scalable, bic, fast, udt, bbr, ledbat, lia, olia, balia or fixed:RATE. The default is fair' -r -f -a "fair\t''
quickstart\t''
modest\t''
aggressive\t''
reno\t''
cubic\t''
highspeed\t''
scalable\t''
bic\t''
fast\t''
udt\t''
bbr\t''
ledbat\t''
lia\t''
olia\t''
balia\t''"
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -s H -l hosts -d 'The servers: names with commas between them, `node[01-13,20]`, or `@FILE` with one on each line; as ssh knows them, or `haul://host[:port]`. Without it, those of the Slurm or PBS job that this runs in' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -l start -d 'How to start them: `ssh-direct` (this machine logs in to each; the default), `ssh` (it logs in to the first, and that one to the others), `mpirun`, `srun` (inside a Slurm job), `daemon` (they run already). Those of the middle three call this machine back' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -l launcher -d 'The `mpirun` or `srun` to call, where it is not found by its name' -r -f -a "(__fish_complete_command)"
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -l launcher-arg -d 'A word for `mpirun` or `srun` before haul\'s own; several times, several words' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -l launcher-on -d 'Call `mpirun` or `srun` on this host, by ssh, and not here' -r -f -a "(__fish_print_hostnames)"
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -l call-back -d 'Address of this machine that the servers call, where it is not the one that it reaches them from; several times, several addresses' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -l timeout -d 'Leave out a server that has not come up within so long, and go on with the others' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -l udp-port -d 'UDP port or ports for the data, where a firewall opens only those' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -l max-packet -d 'The largest packet to send and to take, in bytes behind the UDP header; without it the largest that gets through is found, up to 8972' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -l memory -d 'Memory of this machine for each connection, at most: for what has come and is not written, and for what was sent and is not acknowledged; 2 MiB (two blocks) and more [default: 1 GiB]' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -l state -d 'Directory of the identity key and the known hosts, for haul:// servers' -r -F
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -l dead-after -d 'Give the connection up when nothing has come from the other side for so long; of both sides the shorter time counts' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -s P -d 'Port of the ssh server' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -s i -d 'File with the private key to log in with' -r -F
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -s J -d 'Log in by way of another host' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -s F -d 'Configuration file for ssh' -r -F
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -s o -d 'Option in the form of ssh_config(5)' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -s S -d 'Program to use in place of ssh' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -l remote-haul -d 'haul\'s path on the far side, where its PATH does not have it' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -l transport -d 'What carries the data: udp, tcp, ssh (its own connection), or auto: the first of these that passes' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -l relay -d '`haul serve --relay` by which the two sides meet where NATs let UDP in at neither, and which forwards what passes no other way' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -l foreground -d 'Stay in the foreground, for a service manager'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -l json -d 'Print events as lines of JSON on standard output'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -l dial-out -d 'Have the servers wait for this machine to call them, where they cannot call it'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -s 4 -d 'Use IPv4 only'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -s 6 -d 'Use IPv6 only'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from up" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from down" -l name -d 'What the fleet is called' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from down" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from list" -l json -d 'Print one line of JSON for each on standard output'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -l name -d 'Those of a fleet that `haul fleet up` has started; how they are reached was said there, and so was --mode' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -s H -l hosts -d 'The servers: names with commas between them, `node[01-13,20]`, or `@FILE` with one on each line; as ssh knows them, or `haul://host[:port]`. Without it, those of the Slurm or PBS job that this runs in' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -l start -d 'How to start them: `ssh-direct` (this machine logs in to each; the default), `ssh` (it logs in to the first, and that one to the others), `mpirun`, `srun` (inside a Slurm job), `daemon` (they run already). Those of the middle three call this machine back' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -l launcher -d 'The `mpirun` or `srun` to call, where it is not found by its name' -r -f -a "(__fish_complete_command)"
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -l launcher-arg -d 'A word for `mpirun` or `srun` before haul\'s own; several times, several words' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -l launcher-on -d 'Call `mpirun` or `srun` on this host, by ssh, and not here' -r -f -a "(__fish_print_hostnames)"
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -l call-back -d 'Address of this machine that the servers call, where it is not the one that it reaches them from; several times, several addresses' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -l timeout -d 'Leave out a server that has not come up within so long, and go on with the others' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -l udp-port -d 'UDP port or ports for the data, where a firewall opens only those' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -l max-packet -d 'The largest packet to send and to take, in bytes behind the UDP header; without it the largest that gets through is found, up to 8972' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -l memory -d 'Memory of this machine for each connection, at most: for what has come and is not written, and for what was sent and is not acknowledged; 2 MiB (two blocks) and more [default: 1 GiB]' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -l state -d 'Directory of the identity key and the known hosts, for haul:// servers' -r -F
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -l dead-after -d 'Give the connection up when nothing has come from the other side for so long; of both sides the shorter time counts' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -s P -d 'Port of the ssh server' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -s i -d 'File with the private key to log in with' -r -F
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -s J -d 'Log in by way of another host' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -s F -d 'Configuration file for ssh' -r -F
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -s o -d 'Option in the form of ssh_config(5)' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -s S -d 'Program to use in place of ssh' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -l remote-haul -d 'haul\'s path on the far side, where its PATH does not have it' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -l transport -d 'What carries the data: udp, tcp, ssh (its own connection), or auto: the first of these that passes' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -l relay -d '`haul serve --relay` by which the two sides meet where NATs let UDP in at neither, and which forwards what passes no other way' -r
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -l json -d 'Print one line of JSON for each server on standard output'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -l dial-out -d 'Have the servers wait for this machine to call them, where they cannot call it'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -s 4 -d 'Use IPv4 only'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -s 6 -d 'Use IPv6 only'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from report" -l out -d 'Where to write to [default: DIR, or what several are in]' -r -F
complete -c haul -n "__fish_haul_using_subcommand fleet; and __fish_seen_subcommand_from report" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand pipe" -s s -l source -d 'Address to listen on' -r
complete -c haul -n "__fish_haul_using_subcommand pipe" -l key -d 'The listening side\'s fingerprint, as it prints it; without this its key must be known' -r
complete -c haul -n "__fish_haul_using_subcommand pipe" -l audit -d 'Write who came, with which key, from where, for what, how much and with what result: a line of JSON an event, appended to FILE, or with `journal` entries of systemd\'s journal' -r
complete -c haul -n "__fish_haul_using_subcommand pipe" -l limit -d 'Limit the rate; a bare number is in Kbit/s' -r
complete -c haul -n "__fish_haul_using_subcommand pipe" -l mode -d 'Congestion control, as for `haul cp`; the default is quickstart' -r -f -a "fair\t''
quickstart\t''
modest\t''
aggressive\t''
reno\t''
cubic\t''
highspeed\t''
scalable\t''
bic\t''
fast\t''
udt\t''
bbr\t''
ledbat\t''
lia\t''
olia\t''
balia\t''"
complete -c haul -n "__fish_haul_using_subcommand pipe" -l udp-port -d 'UDP port or ports that the far side may use, with a command' -r
complete -c haul -n "__fish_haul_using_subcommand pipe" -l dead-after -d 'Give the connection up when nothing has come from the other side for so long; of both sides the shorter time counts' -r
complete -c haul -n "__fish_haul_using_subcommand pipe" -l state -d 'Directory of the identity key, the known hosts and the authorised keys' -r -F
complete -c haul -n "__fish_haul_using_subcommand pipe" -s P -d 'Port of the ssh server' -r
complete -c haul -n "__fish_haul_using_subcommand pipe" -s i -d 'File with the private key to log in with' -r -F
complete -c haul -n "__fish_haul_using_subcommand pipe" -s J -d 'Log in by way of another host' -r
complete -c haul -n "__fish_haul_using_subcommand pipe" -s F -d 'Configuration file for ssh' -r -F
complete -c haul -n "__fish_haul_using_subcommand pipe" -s o -d 'Option in the form of ssh_config(5)' -r
complete -c haul -n "__fish_haul_using_subcommand pipe" -s S -d 'Program to use in place of ssh' -r
complete -c haul -n "__fish_haul_using_subcommand pipe" -l remote-haul -d 'haul\'s path on the far side, where its PATH does not have it' -r
complete -c haul -n "__fish_haul_using_subcommand pipe" -l transport -d 'What carries the data: udp, tcp, ssh (its own connection), or auto: the first of these that passes' -r
complete -c haul -n "__fish_haul_using_subcommand pipe" -l relay -d '`haul serve --relay` by which the two sides meet where NATs let UDP in at neither, and which forwards what passes no other way' -r
complete -c haul -n "__fish_haul_using_subcommand pipe" -s l -l listen -d 'Listen instead of connecting'
complete -c haul -n "__fish_haul_using_subcommand pipe" -s k -l keep -d 'With -l: when one connection is over, wait for the next'
complete -c haul -n "__fish_haul_using_subcommand pipe" -l anyone -d 'With -l: let anybody in, not only those whose keys are authorised here'
complete -c haul -n "__fish_haul_using_subcommand pipe" -s d -l detach -d 'Do not read standard input'
complete -c haul -n "__fish_haul_using_subcommand pipe" -s N -d 'Pass on the end of standard input; it always is, this is netcat\'s letter for it'
complete -c haul -n "__fish_haul_using_subcommand pipe" -s q -l quiet -d 'Print nothing but errors'
complete -c haul -n "__fish_haul_using_subcommand pipe" -s v -l verbose -d 'Print what was moved, and how fast; twice, and ssh says more too'
complete -c haul -n "__fish_haul_using_subcommand pipe" -l json -d 'Print one line of JSON on standard error when it is over'
complete -c haul -n "__fish_haul_using_subcommand pipe" -s 4 -d 'Use IPv4 only'
complete -c haul -n "__fish_haul_using_subcommand pipe" -s 6 -d 'Use IPv6 only'
complete -c haul -n "__fish_haul_using_subcommand pipe" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -s L -d 'Listen on a port here and connect to HOST:HOSTPORT from the far side' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -s D -d 'Listen on a port here as a SOCKS5 server; names are resolved and connections made on the far side' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -s R -d 'Listen on a port of the far host and connect to HOST:PORT from here; without HOST:PORT it is a SOCKS5 port there' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -l udp-port -d 'UDP port or ports that the far side may use, where a firewall opens only those' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -l max-connections -d 'TCP connections that may be open at once; further ones wait here, and are refused on the serving side' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -l dead-after -d 'Give the connection up when nothing has come from the other side for so long; of both sides the shorter time counts' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -l limit -d 'Limit the rate of what this side sends, per haul connection; a bare number is in Kbit/s' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -l mode -d 'Congestion control, as for `haul cp`; the default is quickstart' -r -f -a "fair\t''
quickstart\t''
modest\t''
aggressive\t''
reno\t''
cubic\t''
highspeed\t''
scalable\t''
bic\t''
fast\t''
udt\t''
bbr\t''
ledbat\t''
lia\t''
olia\t''
balia\t''"
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -l state -d 'Directory of the identity key, the known hosts and the authorised keys' -r -F
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -s P -d 'Port of the ssh server' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -s i -d 'File with the private key to log in with' -r -F
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -s J -d 'Log in by way of another host' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -s F -d 'Configuration file for ssh' -r -F
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -s o -d 'Option in the form of ssh_config(5)' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -s S -d 'Program to use in place of ssh' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -l remote-haul -d 'haul\'s path on the far side, where its PATH does not have it' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -l transport -d 'What carries the data: udp, tcp, ssh (its own connection), or auto: the first of these that passes' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -l relay -d '`haul serve --relay` by which the two sides meet where NATs let UDP in at neither, and which forwards what passes no other way' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -s g -l gateway-ports -d 'Let other hosts use the ports that name no address to bind to'
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -s N -d 'Run no command on the far host; haul never does, this is ssh\'s letter for it'
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -l json -d 'Print events as lines of JSON on standard output'
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -s q -l quiet -d 'Log warnings and errors only'
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -s v -l verbose -d 'Log every connection; twice, and more'
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -s 4 -d 'Use IPv4 only'
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -s 6 -d 'Use IPv6 only'
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -a "serve" -d 'Serve the other side of a proxy: take haul connections, and connect to targets here'
complete -c haul -n "__fish_haul_using_subcommand proxy; and not __fish_seen_subcommand_from serve connect" -a "connect" -d 'Listen here for TCP connections, and carry them to a `haul proxy serve`'
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from serve" -l to -d 'A target that clients may connect to; may be given several times, the first is the one for clients that name none' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from serve" -l allow -d 'More that clients may name: HOST:PORT, ADDRESS/BITS:PORT or *:PORT; the port may be * or a range' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from serve" -s p -l port -d 'UDP port to listen on' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from serve" -s B -l bind -d 'Local address to listen on' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from serve" -l max-clients -d 'Clients at once; further ones are told to try again later' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from serve" -l max-per-key -d 'Connections at once with one key' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from serve" -l max-per-address -d 'Connections at once from one address' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from serve" -l max-memory -d 'Memory that the connections of all clients may take together, in equal parts; a client that would get less than 14 MiB is told to try again later [default: half of the machine\'s]' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from serve" -l audit -d 'Write who came, with which key, from where, for what, how much and with what result: a line of JSON an event, appended to FILE, or with `journal` entries of systemd\'s journal' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from serve" -l max-connections -d 'TCP connections that may be open at once; further ones wait here, and are refused on the serving side' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from serve" -l dead-after -d 'Give the connection up when nothing has come from the other side for so long; of both sides the shorter time counts' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from serve" -l limit -d 'Limit the rate of what this side sends, per haul connection; a bare number is in Kbit/s' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from serve" -l mode -d 'Congestion control, as for `haul cp`; the default is quickstart' -r -f -a "fair\t''
quickstart\t''
modest\t''
aggressive\t''
reno\t''
cubic\t''
highspeed\t''
scalable\t''
bic\t''
fast\t''
udt\t''
bbr\t''
ledbat\t''
lia\t''
olia\t''
balia\t''"
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from serve" -l state -d 'Directory of the identity key, the known hosts and the authorised keys' -r -F
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from serve" -l anyone -d 'Let anybody in, not only those whose keys are authorised here'
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from serve" -l json -d 'Print events as lines of JSON on standard output'
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from serve" -s q -l quiet -d 'Log warnings and errors only'
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from serve" -s v -l verbose -d 'Log every connection; twice, and more'
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -l listen -d 'Listen on this TCP port for connections to the other side\'s target, or to that of --to' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -l to -d 'The target for --listen; without it the other side\'s first one' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -l transparent -d 'Listen for connections that TPROXY rules of this gateway hand over, and carry each to where it was going (Linux, root)' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -s L -d 'Listen on a port here and connect to HOST:HOSTPORT from the far side' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -s D -d 'Listen on a port here as a SOCKS5 server; names are resolved and connections made on the far side' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -l key -d 'The other side\'s fingerprint, as it prints it; without this its key must be known' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -l udp-port -d 'UDP port or ports that the far side may use, over ssh' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -l max-connections -d 'TCP connections that may be open at once; further ones wait here, and are refused on the serving side' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -l dead-after -d 'Give the connection up when nothing has come from the other side for so long; of both sides the shorter time counts' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -l limit -d 'Limit the rate of what this side sends, per haul connection; a bare number is in Kbit/s' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -l mode -d 'Congestion control, as for `haul cp`; the default is quickstart' -r -f -a "fair\t''
quickstart\t''
modest\t''
aggressive\t''
reno\t''
cubic\t''
highspeed\t''
scalable\t''
bic\t''
fast\t''
udt\t''
bbr\t''
ledbat\t''
lia\t''
olia\t''
balia\t''"
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -l state -d 'Directory of the identity key, the known hosts and the authorised keys' -r -F
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -s P -d 'Port of the ssh server' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -s i -d 'File with the private key to log in with' -r -F
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -s J -d 'Log in by way of another host' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -s F -d 'Configuration file for ssh' -r -F
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -s o -d 'Option in the form of ssh_config(5)' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -s S -d 'Program to use in place of ssh' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -l remote-haul -d 'haul\'s path on the far side, where its PATH does not have it' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -l transport -d 'What carries the data: udp, tcp, ssh (its own connection), or auto: the first of these that passes' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -l relay -d '`haul serve --relay` by which the two sides meet where NATs let UDP in at neither, and which forwards what passes no other way' -r
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -s g -l gateway-ports -d 'Let other hosts use the ports that name no address to bind to'
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -l json -d 'Print events as lines of JSON on standard output'
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -s q -l quiet -d 'Log warnings and errors only'
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -s v -l verbose -d 'Log every connection; twice, and more'
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -s 4 -d 'Use IPv4 only'
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -s 6 -d 'Use IPv6 only'
complete -c haul -n "__fish_haul_using_subcommand proxy; and __fish_seen_subcommand_from connect" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand rsync" -l mode -d 'Congestion control, as for `haul cp`; the default is quickstart' -r
complete -c haul -n "__fish_haul_using_subcommand rsync" -l udp-port -d 'UDP port or ports that the far side may use, where a firewall opens only those' -r
complete -c haul -n "__fish_haul_using_subcommand rsync" -l transport -d 'What carries the data: udp, tcp, ssh (its own connection), or auto: the first of these that passes' -r
complete -c haul -n "__fish_haul_using_subcommand rsync" -l relay -d '`haul serve --relay` by which the two sides meet where NATs let UDP in at neither, and which forwards what passes no other way' -r
complete -c haul -n "__fish_haul_using_subcommand rsync" -l dead-after -d 'Give the connection up when nothing has come from the other side for so long (90)' -r
complete -c haul -n "__fish_haul_using_subcommand rsync" -l remote-haul -d 'haul\'s path on the far side, where its PATH does not have it' -r
complete -c haul -n "__fish_haul_using_subcommand rsync" -l help -d 'Print help; -h is rsync\'s'
complete -c haul -n "__fish_haul_using_subcommand rsh" -s l -d 'Who logs in' -r
complete -c haul -n "__fish_haul_using_subcommand rsh" -s p -d 'Port of the ssh server' -r
complete -c haul -n "__fish_haul_using_subcommand rsh" -s W -d 'Connect standard input and output to a TCP port as the far side sees it, as ProxyCommand of ssh for instance' -r
complete -c haul -n "__fish_haul_using_subcommand rsh" -s E -d 'Append haul\'s and the command\'s errors to FILE' -r -F
complete -c haul -n "__fish_haul_using_subcommand rsh" -l mode -d 'Congestion control, as for `haul cp`; the default is quickstart' -r -f -a "fair\t''
quickstart\t''
modest\t''
aggressive\t''
reno\t''
cubic\t''
highspeed\t''
scalable\t''
bic\t''
fast\t''
udt\t''
bbr\t''
ledbat\t''
lia\t''
olia\t''
balia\t''"
complete -c haul -n "__fish_haul_using_subcommand rsh" -l udp-port -d 'UDP port or ports that the far side may use' -r
complete -c haul -n "__fish_haul_using_subcommand rsh" -l transport -d 'What carries the data: udp, tcp, ssh (its own connection), or auto: the first of these that passes' -r
complete -c haul -n "__fish_haul_using_subcommand rsh" -l relay -d '`haul serve --relay` by which the two sides meet where NATs let UDP in at neither, and which forwards what passes no other way' -r
complete -c haul -n "__fish_haul_using_subcommand rsh" -l dead-after -d 'Give the connection up when nothing has come from the other side for so long; of both sides the shorter time counts' -r
complete -c haul -n "__fish_haul_using_subcommand rsh" -s i -d 'File with the private key to log in with' -r -F
complete -c haul -n "__fish_haul_using_subcommand rsh" -s J -d 'Log in by way of another host' -r
complete -c haul -n "__fish_haul_using_subcommand rsh" -s F -d 'Configuration file for ssh' -r -F
complete -c haul -n "__fish_haul_using_subcommand rsh" -s o -d 'Option in the form of ssh_config(5)' -r
complete -c haul -n "__fish_haul_using_subcommand rsh" -s c -d 'Ciphers of the login' -r
complete -c haul -n "__fish_haul_using_subcommand rsh" -s m -d 'Message authentication of the login' -r
complete -c haul -n "__fish_haul_using_subcommand rsh" -s S -d 'The socket by which logins are shared' -r
complete -c haul -n "__fish_haul_using_subcommand rsh" -s O -d 'Tell the ssh that is shared to check, exit or stop' -r
complete -c haul -n "__fish_haul_using_subcommand rsh" -l ssh -d 'Program to use in place of ssh' -r
complete -c haul -n "__fish_haul_using_subcommand rsh" -l remote-haul -d 'haul\'s path on the far side, where its PATH does not have it' -r
complete -c haul -n "__fish_haul_using_subcommand rsh" -l bootstrap -d 'Where the far side has no haul of this version, send it one over ssh: into ~/.cache/haul there to stay, or to be gone at once with `once`' -r -f -a "keep\t'Until somebody removes it'
once\t'It is removed before it has done anything'"
complete -c haul -n "__fish_haul_using_subcommand rsh" -l bootstrap-from -d 'The static haul to send, or a directory with one for each kind of machine' -r -F
complete -c haul -n "__fish_haul_using_subcommand rsh" -s e -d 'There is no terminal to escape from' -r
complete -c haul -n "__fish_haul_using_subcommand rsh" -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand rsh" -s n -d 'Do not read standard input'
complete -c haul -n "__fish_haul_using_subcommand rsh" -s s -d 'Run the subsystem that is named in the place of the command: `sftp`, or one that sshd_config there names'
complete -c haul -n "__fish_haul_using_subcommand rsh" -s N -d 'Run nothing; stay connected until interrupted'
complete -c haul -n "__fish_haul_using_subcommand rsh" -s f -d 'Go to the background when the login is over; standard input is not read'
complete -c haul -n "__fish_haul_using_subcommand rsh" -s q -d 'Print nothing but errors'
complete -c haul -n "__fish_haul_using_subcommand rsh" -s v -d 'ssh says more'
complete -c haul -n "__fish_haul_using_subcommand rsh" -s 4 -d 'Use IPv4 only'
complete -c haul -n "__fish_haul_using_subcommand rsh" -s 6 -d 'Use IPv6 only'
complete -c haul -n "__fish_haul_using_subcommand rsh" -s M -d 'Logins after this one share its ssh'
complete -c haul -n "__fish_haul_using_subcommand rsh" -s G -d 'Print what ssh makes of its configuration for the host'
complete -c haul -n "__fish_haul_using_subcommand rsh" -s V -d 'Print ssh\'s version'
complete -c haul -n "__fish_haul_using_subcommand rsh" -s T -d 'No terminal is ever made'
complete -c haul -n "__fish_haul_using_subcommand rsh" -s t -d 'No terminal is ever made; a single -t at a terminal is refused, for somebody waits for one'
complete -c haul -n "__fish_haul_using_subcommand rsh" -s x -d 'X11 is never forwarded'
complete -c haul -n "__fish_haul_using_subcommand rsh" -s a -d 'The agent is never forwarded'
complete -c haul -n "__fish_haul_using_subcommand rsh" -s C -d 'Nothing is compressed: programs that gain by it do that themselves'
complete -c haul -n "__fish_haul_using_subcommand rsh" -s 2 -d 'There is no other version of the protocol'
complete -c haul -n "__fish_haul_using_subcommand serve" -l root -d 'Directory to export, read-only unless it ends in `:rw`; may be given several times' -r
complete -c haul -n "__fish_haul_using_subcommand serve" -l roots-file -d 'File of more roots, `NAME=PATH[:rw[,owners]]` a line; read again on SIGHUP' -r -F
complete -c haul -n "__fish_haul_using_subcommand serve" -l listen -d 'UDP address and port to listen on' -r
complete -c haul -n "__fish_haul_using_subcommand serve" -l address -d 'Address, or address and port, at which clients may find this machine too, or `none`; may be given several times' -r
complete -c haul -n "__fish_haul_using_subcommand serve" -l state -d 'Directory of the identity key and the authorised keys' -r -F
complete -c haul -n "__fish_haul_using_subcommand serve" -l user -d 'Become this user once the port is open and the identity key is read' -r
complete -c haul -n "__fish_haul_using_subcommand serve" -s l -l limit -d 'Limit the rate of each connection; a bare number is in Kbit/s' -r
complete -c haul -n "__fish_haul_using_subcommand serve" -l max-clients -d 'Clients at once; further ones are told to try again later' -r
complete -c haul -n "__fish_haul_using_subcommand serve" -l max-per-key -d 'Connections at once with one key' -r
complete -c haul -n "__fish_haul_using_subcommand serve" -l max-per-address -d 'Connections at once from one address' -r
complete -c haul -n "__fish_haul_using_subcommand serve" -l max-memory -d 'Memory that the connections of all clients may take together, in equal parts; a client that would get less than 14 MiB is told to try again later [default: half of the machine\'s]' -r
complete -c haul -n "__fish_haul_using_subcommand serve" -l audit -d 'Write who came, with which key, from where, for what, how much and with what result: a line of JSON an event, appended to FILE, or with `journal` entries of systemd\'s journal' -r
complete -c haul -n "__fish_haul_using_subcommand serve" -l relay -d 'Let two machines behind NATs meet here, and forward between them what passes no other way: for keys that are authorised, or for anybody' -r
complete -c haul -n "__fish_haul_using_subcommand serve" -l relay-port -d 'UDP port of the relay; the one after that of --listen unless it is said' -r
complete -c haul -n "__fish_haul_using_subcommand serve" -l relay-pairs -d 'Pairs that the relay serves at once; of these a quarter may be of one key or from one address' -r
complete -c haul -n "__fish_haul_using_subcommand serve" -l relay-limit -d 'Limit what the relay forwards of each pair; a bare number is in Kbit/s' -r
complete -c haul -n "__fish_haul_using_subcommand serve" -s q -l quiet -d 'Log warnings and errors only'
complete -c haul -n "__fish_haul_using_subcommand serve" -s v -l verbose -d 'Log more'
complete -c haul -n "__fish_haul_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c haul -n "__fish_haul_using_subcommand key; and not __fish_seen_subcommand_from show trust authorize list revoke" -l state -d 'Directory of the keys' -r -F
complete -c haul -n "__fish_haul_using_subcommand key; and not __fish_seen_subcommand_from show trust authorize list revoke" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand key; and not __fish_seen_subcommand_from show trust authorize list revoke" -f -a "show" -d 'Print the fingerprint of the own key, made if there is none'
complete -c haul -n "__fish_haul_using_subcommand key; and not __fish_seen_subcommand_from show trust authorize list revoke" -f -a "trust" -d 'Trust a daemon\'s key'
complete -c haul -n "__fish_haul_using_subcommand key; and not __fish_seen_subcommand_from show trust authorize list revoke" -f -a "authorize" -d 'Let the holder of a key use the daemon, the proxy and the pipes on this machine'
complete -c haul -n "__fish_haul_using_subcommand key; and not __fish_seen_subcommand_from show trust authorize list revoke" -f -a "list" -d 'List the trusted hosts, and the authorised keys with what they may do'
complete -c haul -n "__fish_haul_using_subcommand key; and not __fish_seen_subcommand_from show trust authorize list revoke" -f -a "revoke" -d 'Withdraw an authorised key, or the trust in a host'
complete -c haul -n "__fish_haul_using_subcommand key; and __fish_seen_subcommand_from show" -l state -d 'Directory of the keys' -r -F
complete -c haul -n "__fish_haul_using_subcommand key; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand key; and __fish_seen_subcommand_from trust" -l state -d 'Directory of the keys' -r -F
complete -c haul -n "__fish_haul_using_subcommand key; and __fish_seen_subcommand_from trust" -l replace -d 'Put this key in the place of another one that is trusted for the host'
complete -c haul -n "__fish_haul_using_subcommand key; and __fish_seen_subcommand_from trust" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand key; and __fish_seen_subcommand_from authorize" -l name -d 'Whose key it is' -r
complete -c haul -n "__fish_haul_using_subcommand key; and __fish_seen_subcommand_from authorize" -l root -d 'Name of a root of the daemon that copies may use; may be given several times; without it all' -r
complete -c haul -n "__fish_haul_using_subcommand key; and __fish_seen_subcommand_from authorize" -l only -d 'Services that may be used: cp, perf and relay (the daemon\'s), proxy, pipe' -r
complete -c haul -n "__fish_haul_using_subcommand key; and __fish_seen_subcommand_from authorize" -l proxy -d 'Target that `haul proxy serve` may connect to; may be given several times; without it all that it allows' -r
complete -c haul -n "__fish_haul_using_subcommand key; and __fish_seen_subcommand_from authorize" -l from -d 'Network or address that the holder must come from; may be given several times' -r
complete -c haul -n "__fish_haul_using_subcommand key; and __fish_seen_subcommand_from authorize" -l max-rate -d 'The rate of each connection; a bare number is in Kbit/s' -r
complete -c haul -n "__fish_haul_using_subcommand key; and __fish_seen_subcommand_from authorize" -l expires -d 'The key is refused from then on: 2026-12-31 or 2026-12-31T18:00Z, in UTC' -r
complete -c haul -n "__fish_haul_using_subcommand key; and __fish_seen_subcommand_from authorize" -l state -d 'Directory of the keys' -r -F
complete -c haul -n "__fish_haul_using_subcommand key; and __fish_seen_subcommand_from authorize" -l read-only -d 'Copies may read only, from whatever root'
complete -c haul -n "__fish_haul_using_subcommand key; and __fish_seen_subcommand_from authorize" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand key; and __fish_seen_subcommand_from list" -l state -d 'Directory of the keys' -r -F
complete -c haul -n "__fish_haul_using_subcommand key; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand key; and __fish_seen_subcommand_from revoke" -l state -d 'Directory of the keys' -r -F
complete -c haul -n "__fish_haul_using_subcommand key; and __fish_seen_subcommand_from revoke" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand config; and not __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand config; and not __fish_seen_subcommand_from check" -a "check" -d 'Check the files; what is wrong is named by file and line, with exit status 2'
complete -c haul -n "__fish_haul_using_subcommand config; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s c -l client -d 'Measure against a running server' -r -f -a "(__fish_print_hostnames)"
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s p -l port -d 'Port of the server, with -s or -c: UDP, and TCP of the same number for --tcp [default: 7701]' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s B -l bind -d 'Local address to listen on or to connect from' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s t -l time -d 'Measure for so long' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s n -l bytes -d 'Send so many bytes instead' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s O -l omit -d 'Leave out the first seconds' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s P -l parallel -d 'Streams in parallel: of one connection with haul, connections with --tcp' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s b -l bitrate -d 'What each stream sends at most; without it, or with 0, as much as the path bears' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s l -l length -d 'Bytes handed to the transport at once' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l mode -d 'How to share the path with others: fair, quickstart, modest, aggressive, reno, cubic, highspeed, scalable, bic, fast, udt, bbr, ledbat, lia, olia, balia or fixed:RATE. The default is fair' -r -f -a "fair\t''
quickstart\t''
modest\t''
aggressive\t''
reno\t''
cubic\t''
highspeed\t''
scalable\t''
bic\t''
fast\t''
udt\t''
bbr\t''
ledbat\t''
lia\t''
olia\t''
balia\t''"
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l paths -d 'Send from so many ports to the far side\'s one, 1 to 8: for networks that send flows different ways. Those that share a bottleneck are one flow to others' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l via -d 'Leave by these interfaces or addresses, a path for each, and follow them as they come and go: eth0, 192.0.2.7, or all. eth1:backup carries data only while no other way works; wwan0:metered=BYTES too, and no more than that. Over UDP alone' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l scheduler -d 'Which path is asked first, of those that carry data: completion (the default), shortest-rtt, round-robin or redundant' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l congestion -d 'The kernel\'s congestion control for --tcp, for instance cubic or bbr' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s i -l interval -d 'Seconds between reports, fractions too; a file name here is a key for ssh, as in haul-cp(1)' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s T -l title -d 'Put this before every line' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l trace -d 'Draw what this side sent, rate, delay and loss over time with the phases of the congestion control: to a file that ends in .svg or .png; in .qlog a log of it' -r -F
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l max-clients -d 'Clients at once' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l max-per-address -d 'Clients at once from one address' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l max-time -d 'The longest measurement' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l max-memory -d 'Window for each client at most; memory is bounded by three of it [default: up to 1G, so that all clients together take a quarter of the machine\'s memory]' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l max-bitrate -d 'What is sent to each client at most' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l audit -d 'Write who came, with which key, from where, for what, how much and with what result: a line of JSON an event, appended to FILE, or with `journal` entries of systemd\'s journal' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l key -d 'Believe only the server with this key' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l ssh-port -d 'Port of the ssh server' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l jump -d 'Log in by way of another host (ssh\'s -J)' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s F -d 'Configuration file for ssh' -r -F
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s o -d 'Option in the form of ssh_config(5)' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s S -d 'Program to use in place of ssh' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l remote-haul -d 'haul\'s path on the far side, where its PATH does not have it' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l transport -d 'What carries the data: udp, tcp, ssh (its own connection), or auto: the first of these that passes' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l relay -d '`haul serve --relay` by which the two sides meet where NATs let UDP in at neither, and which forwards what passes no other way' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l udp-port -d 'Port or ports that the far side may use' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l dead-after -d 'Give the connection up when nothing has come from the other side for so long; of both sides the shorter time counts' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l state -d 'Directory of the identity key and the known hosts, for haul:// hosts' -r -F
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s s -l server -d 'Run a server, until it is interrupted'
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s R -l reverse -d 'The server sends'
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l bidir -d 'Both sides send at once'
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l no-pacing -d 'Send whatever the window lets go at once, in bursts: to see what pacing is good for'
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l tcp -d 'Measure the kernel\'s TCP instead'
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s J -l json -d 'Print one JSON document, in iperf3\'s form'
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l json-stream -d 'Print JSON as it comes, an event a line'
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -l get-server-output -d 'Show the server\'s own output too'
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s v -l verbose -d 'Say more; twice, and ssh says more too'
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s 1 -l one-off -d 'Serve one client, then end'
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s 4 -d 'Use IPv4 only'
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s 6 -d 'Use IPv6 only'
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c haul -n "__fish_haul_using_subcommand perf; and not __fish_seen_subcommand_from mesh" -a "mesh" -d 'Measure every ordered pair of a list of hosts, haul against TCP'
complete -c haul -n "__fish_haul_using_subcommand perf; and __fish_seen_subcommand_from mesh" -s t -l time -d 'Length of each measurement' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and __fish_seen_subcommand_from mesh" -s O -l omit -d 'Leave out the first seconds of each' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and __fish_seen_subcommand_from mesh" -s i -l interval -d 'Seconds between two points of the plots; a file name here is a key for ssh, as in haul-cp(1)' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and __fish_seen_subcommand_from mesh" -s P -l parallel -d 'Streams in parallel' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and __fish_seen_subcommand_from mesh" -l mode -d 'How to share the path with others: fair, quickstart, modest, aggressive, reno, cubic, highspeed, scalable, bic, fast, udt, bbr, ledbat, lia, olia, balia or fixed:RATE. The default is fair' -r -f -a "fair\t''
quickstart\t''
modest\t''
aggressive\t''
reno\t''
cubic\t''
highspeed\t''
scalable\t''
bic\t''
fast\t''
udt\t''
bbr\t''
ledbat\t''
lia\t''
olia\t''
balia\t''"
complete -c haul -n "__fish_haul_using_subcommand perf; and __fish_seen_subcommand_from mesh" -l tcp-mode -d 'Measure TCP with this law of `haul tcp` in haul\'s place: fair, quickstart, modest, aggressive or another one' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and __fish_seen_subcommand_from mesh" -l congestion -d 'TCP\'s congestion control' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and __fish_seen_subcommand_from mesh" -s p -l port -d 'Port of the servers, UDP and TCP; any free one without it' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and __fish_seen_subcommand_from mesh" -l at-once -d 'Pairs measured at once, of different hosts: for sites that share no link' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and __fish_seen_subcommand_from mesh" -l out -d 'Where the results go: PREFIX.csv, PREFIX.json, PREFIX.html; PREFIX-2 and so on where there is one' -r -F
complete -c haul -n "__fish_haul_using_subcommand perf; and __fish_seen_subcommand_from mesh" -l ssh-port -d 'Port of the ssh servers' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and __fish_seen_subcommand_from mesh" -l jump -d 'Log in by way of another host (ssh\'s -J)' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and __fish_seen_subcommand_from mesh" -s F -d 'Configuration file for ssh' -r -F
complete -c haul -n "__fish_haul_using_subcommand perf; and __fish_seen_subcommand_from mesh" -s o -d 'Option in the form of ssh_config(5)' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and __fish_seen_subcommand_from mesh" -s S -d 'Program to use in place of ssh' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and __fish_seen_subcommand_from mesh" -l remote-haul -d 'haul\'s path on the far side, where its PATH does not have it' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and __fish_seen_subcommand_from mesh" -l transport -d 'What carries the data: udp, tcp, ssh (its own connection), or auto: the first of these that passes' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and __fish_seen_subcommand_from mesh" -l relay -d '`haul serve --relay` by which the two sides meet where NATs let UDP in at neither, and which forwards what passes no other way' -r
complete -c haul -n "__fish_haul_using_subcommand perf; and __fish_seen_subcommand_from mesh" -s 4 -d 'Use IPv4 only'
complete -c haul -n "__fish_haul_using_subcommand perf; and __fish_seen_subcommand_from mesh" -s 6 -d 'Use IPv6 only'
complete -c haul -n "__fish_haul_using_subcommand perf; and __fish_seen_subcommand_from mesh" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c haul -n "__fish_haul_using_subcommand tcp; and not __fish_seen_subcommand_from on off status watch set switch run default install check" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand tcp; and not __fish_seen_subcommand_from on off status watch set switch run default install check" -f -a "on" -d 'Give new connections a mode or an algorithm'
complete -c haul -n "__fish_haul_using_subcommand tcp; and not __fish_seen_subcommand_from on off status watch set switch run default install check" -f -a "off" -d 'Put back what was there: everything, or what was done for these connections'
complete -c haul -n "__fish_haul_using_subcommand tcp; and not __fish_seen_subcommand_from on off status watch set switch run default install check" -f -a "status" -d 'Show what is loaded, who gets what and how, and each connection with what is known of its path'
complete -c haul -n "__fish_haul_using_subcommand tcp; and not __fish_seen_subcommand_from on off status watch set switch run default install check" -f -a "watch" -d 'Show the connections again and again'
complete -c haul -n "__fish_haul_using_subcommand tcp; and not __fish_seen_subcommand_from on off status watch set switch run default install check" -f -a "set" -d 'Change a setting while connections live; without one, show all'
complete -c haul -n "__fish_haul_using_subcommand tcp; and not __fish_seen_subcommand_from on off status watch set switch run default install check" -f -a "switch" -d 'Give connections that are open another mode or algorithm'
complete -c haul -n "__fish_haul_using_subcommand tcp; and not __fish_seen_subcommand_from on off status watch set switch run default install check" -f -a "run" -d 'Run a program whose connections, and those of what it starts, have a mode or an algorithm'
complete -c haul -n "__fish_haul_using_subcommand tcp; and not __fish_seen_subcommand_from on off status watch set switch run default install check" -f -a "default" -d 'Show what new connections get where nothing narrower says, or set it'
complete -c haul -n "__fish_haul_using_subcommand tcp; and not __fish_seen_subcommand_from on off status watch set switch run default install check" -f -a "install" -d 'Have what is on now switched on at each start of the machine, by a systemd unit'
complete -c haul -n "__fish_haul_using_subcommand tcp; and not __fish_seen_subcommand_from on off status watch set switch run default install check" -f -a "check" -d 'Say what the path to a host needs of this machine\'s buffers'
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from on" -l to -d 'Connections to and from this network, as 10.1.0.0/16, or host; may be given several times' -r
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from on" -l netns -d 'Of this network namespace, by its name for `ip netns`' -r
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from on" -l cgroup -d 'Of the programs in this directory of the cgroup2 file system' -r -F
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from on" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from off" -l to -d 'Connections to and from this network, as 10.1.0.0/16, or host; may be given several times' -r
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from off" -l netns -d 'Of this network namespace, by its name for `ip netns`' -r
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from off" -l cgroup -d 'Of the programs in this directory of the cgroup2 file system' -r -F
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from off" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from status" -l netns -d 'Connections of this network namespace' -r
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from status" -l json -d 'As JSON'
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from watch" -l netns -d 'Connections of this network namespace' -r
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from watch" -l every -d 'Seconds between two looks' -r
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from watch" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from set" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from switch" -l to -d 'Connections to and from this network; may be given several times; without it all' -r
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from switch" -l netns -d 'Of this network namespace' -r
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from switch" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from run" -l mode -d 'Mode or algorithm: fair, quickstart, modest, aggressive, or one that `haul tcp --help` names' -r
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from default" -l netns -d 'Of this network namespace' -r
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from default" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from install" -l print -d 'Print the unit and change nothing'
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from install" -l remove -d 'Take the unit away'
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from install" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from check" -l port -d 'Port to measure the round-trip time by; one that refuses will do' -r
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from check" -l rate -d 'The rate to be reached' -r
complete -c haul -n "__fish_haul_using_subcommand tcp; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand pace; and not __fish_seen_subcommand_from on off status" -l rate -d 'The rate of each class that has none of its own' -r
complete -c haul -n "__fish_haul_using_subcommand pace; and not __fish_seen_subcommand_from on off status" -l to -d 'Connections to and from this network are a class, with a rate of its own perhaps; may be given several times, and then others are left alone' -r
complete -c haul -n "__fish_haul_using_subcommand pace; and not __fish_seen_subcommand_from on off status" -l queue -d 'Hold UDP and all else too, where it leaves through this interface: in a queue there (by `tc`), in the place of the kernel\'s default, which comes back at the end' -r
complete -c haul -n "__fish_haul_using_subcommand pace; and not __fish_seen_subcommand_from on off status" -l queue-by -d 'What holds packets in that queue' -r -f -a "auto\t'fq where the kernel has it, else htb (the default)'
fq\t'A departure time for each packet'
htb\t'A class of HTB for each of these'"
complete -c haul -n "__fish_haul_using_subcommand pace; and not __fish_seen_subcommand_from on off status" -l gaps -d 'Fill the gaps with PAUSE frames that the next switch drops: exact to the byte, any protocol. What leaves through this Ethernet interface for the networks of --to is spaced while CMD runs, whoever sends it' -r
complete -c haul -n "__fish_haul_using_subcommand pace; and not __fish_seen_subcommand_from on off status" -l line -d 'What the line of that interface carries, where it does not say so itself' -r
complete -c haul -n "__fish_haul_using_subcommand pace; and not __fish_seen_subcommand_from on off status" -l follow -d 'Not more than a window each round trip. With --gaps the rate is all of TCP\'s windows there together'
complete -c haul -n "__fish_haul_using_subcommand pace; and not __fish_seen_subcommand_from on off status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c haul -n "__fish_haul_using_subcommand pace; and not __fish_seen_subcommand_from on off status" -a "on" -d 'Hold all TCP connections that open from now on to these rates, until `haul pace off` or a restart of the machine'
complete -c haul -n "__fish_haul_using_subcommand pace; and not __fish_seen_subcommand_from on off status" -a "off" -d 'Take the rates back; connections that are open keep theirs'
complete -c haul -n "__fish_haul_using_subcommand pace; and not __fish_seen_subcommand_from on off status" -a "status" -d 'Show what is on, and how many connections have it'
complete -c haul -n "__fish_haul_using_subcommand pace; and __fish_seen_subcommand_from on" -l rate -d 'The rate of each class that has none of its own' -r
complete -c haul -n "__fish_haul_using_subcommand pace; and __fish_seen_subcommand_from on" -l to -d 'Connections to and from this network are a class, with a rate of its own perhaps; may be given several times, and then others are left alone' -r
complete -c haul -n "__fish_haul_using_subcommand pace; and __fish_seen_subcommand_from on" -l queue -d 'Hold UDP and all else too, where it leaves through this interface: in a queue there (by `tc`), in the place of the kernel\'s default, which comes back at the end' -r
complete -c haul -n "__fish_haul_using_subcommand pace; and __fish_seen_subcommand_from on" -l queue-by -d 'What holds packets in that queue' -r -f -a "auto\t'fq where the kernel has it, else htb (the default)'
fq\t'A departure time for each packet'
htb\t'A class of HTB for each of these'"
complete -c haul -n "__fish_haul_using_subcommand pace; and __fish_seen_subcommand_from on" -l follow -d 'Not more than a window each round trip. With --gaps the rate is all of TCP\'s windows there together'
complete -c haul -n "__fish_haul_using_subcommand pace; and __fish_seen_subcommand_from on" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c haul -n "__fish_haul_using_subcommand pace; and __fish_seen_subcommand_from off" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand pace; and __fish_seen_subcommand_from status" -l json -d 'As JSON'
complete -c haul -n "__fish_haul_using_subcommand pace; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand trace" -s o -l out -d 'Write it as what the name ends with: .svg or .png a picture of rate, delay, bytes under way and loss, with the phases behind them; .qlog for viewers of QUIC\'s logs' -r -F
complete -c haul -n "__fish_haul_using_subcommand trace" -l id -d 'The connection to draw; without it the one that carried most' -r
complete -c haul -n "__fish_haul_using_subcommand trace" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand lab; and not __fish_seen_subcommand_from wan relay bench run list decode" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand lab; and not __fish_seen_subcommand_from wan relay bench run list decode" -f -a "wan" -d 'A WAN between network namespaces of this machine'
complete -c haul -n "__fish_haul_using_subcommand lab; and not __fish_seen_subcommand_from wan relay bench run list decode" -f -a "relay" -d 'The same link between UDP sockets, for haul alone and without root'
complete -c haul -n "__fish_haul_using_subcommand lab; and not __fish_seen_subcommand_from wan relay bench run list decode" -f -a "bench" -d 'haul beside other tools, over the emulated WAN'
complete -c haul -n "__fish_haul_using_subcommand lab; and not __fish_seen_subcommand_from wan relay bench run list decode" -f -a "run" -d 'Figures of the field, reproduced: in simulation and on real sockets'
complete -c haul -n "__fish_haul_using_subcommand lab; and not __fish_seen_subcommand_from wan relay bench run list decode" -f -a "list" -d 'The experiments that `run` knows'
complete -c haul -n "__fish_haul_using_subcommand lab; and not __fish_seen_subcommand_from wan relay bench run list decode" -f -a "decode" -d 'What is in captured packets of one\'s own connections'
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from wan" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from wan" -f -a "up" -d 'Make a WAN and leave it up'
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from wan" -f -a "exec" -d 'Run a command on one of its hosts'
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from wan" -f -a "set" -d 'Change the link while it carries traffic'
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from wan" -f -a "status" -d 'Packets, bytes, drops by cause, queue and rates of each direction'
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from wan" -f -a "down" -d 'End the WAN and whatever runs on its hosts'
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from wan" -f -a "run" -d 'Make a WAN, run a command, clean up whatever happens'
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from wan" -f -a "check" -d 'Compare what is configured with what ping and iperf3 measure'
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from relay" -l listen -d 'Address and port to listen on' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from relay" -l to -d 'Address and port of the server' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from relay" -l rate -d 'Rate of IP bytes, from a to b and back [default: 10G]' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from relay" -l asymmetric -d 'Another rate from b to a' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from relay" -l rtt -d 'Round-trip time without queues; each direction takes half [default: 100ms]' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from relay" -l jitter -d 'Delay on top in each direction, wandering between zero and this' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from relay" -l queue -d 'Queue of each direction: bandwidth-delay products, bytes or time [default: 1bdp]' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from relay" -l loss -d 'Packets lost in each direction' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from relay" -l burst-loss -d 'Lose them in bursts of this mean length (Gilbert-Elliott); 1 is back to one by one' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from relay" -l reorder -d 'Packets that arrive later than those sent after them' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from relay" -l reorder-by -d 'By how much later [default: 1ms]' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from relay" -l duplicate -d 'Packets that arrive twice' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from relay" -l corrupt -d 'Packets that arrive with other bytes; their checksum tells' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from relay" -l ecn -d 'Mark packets (ECN) that find more than this in the queue' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from relay" -l seed -d 'Seed of all chance [default: 1]' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from relay" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from bench" -l rate -d 'Rates of the links' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from bench" -l rtt -d 'Round-trip times' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from bench" -l loss -d 'Packets lost in each direction' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from bench" -l queue -d 'Queue of each direction: bandwidth-delay products, bytes or time' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from bench" -l tools -d 'Who takes part; by default everybody who can do the work' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from bench" -l seconds -d 'How long each measurement in memory takes, or at most takes with --bytes [default: 10, or 60]' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from bench" -l bytes -d 'Move this much in memory, and measure how long it takes' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from bench" -l files -d 'Copy files from RAM disk to RAM disk: their number and size, for instance 1x1GB or 2000x8KiB' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from bench" -l repeat -d 'How many turns each tool has in each row' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from bench" -l goals -d 'Measure the rows of the project\'s goals instead' -r -f -a "memory\t'Memory to memory, one connection'
files\t'Files from RAM disk to RAM disk, logging in included'
carriers\t'Files where a firewall drops UDP: haul over TCP and through ssh beside scp and mscp'"
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from bench" -l out -d 'Directory of the results [default: bench/results/DATE-NAME in a checkout of haul, haul-bench-DATE elsewhere]' -r -F
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from bench" -l quick -d 'Less time for each measurement of the goals, and a single turn'
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from bench" -l json -d 'Print the results as JSON instead of a table'
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from bench" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from run" -l tools -d 'Who is compared on real sockets, where an experiment compares tools; by default everybody' -r
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from run" -l out -d 'Directory of the results [default: bench/results/DATE-NAME in a checkout of haul, haul-lab-DATE-NAME elsewhere]' -r -F
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from run" -l all -d 'All of them'
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from run" -l quick -d 'Small and short: to see that everything works, not for its figures'
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from run" -l sim-only -d 'In simulation only: without root, and with the same figures each time'
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from run" -l real -d 'On real sockets over the emulated WAN only'
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from list" -l json -d 'As JSON'
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from decode" -l keys -d 'File that HAUL_KEYLOG named on one of the two hosts' -r -F
complete -c haul -n "__fish_haul_using_subcommand lab; and __fish_seen_subcommand_from decode" -s h -l help -d 'Print help'
complete -c haul -n "__fish_haul_using_subcommand remote" -l only -d 'What may be done: cp, perf, proxy, tunnel; with --root cp alone unless it is named, else everything' -r -f -a "cp\t'A copy'
perf\t'A measurement'
proxy\t'TCP connections in both directions'
tunnel\t'A command and its standard streams: `haul pipe`, `rsh`, `rsync`'"
complete -c haul -n "__fish_haul_using_subcommand remote" -l root -d 'Directory outside of which copies neither read nor write; their paths start there, `~` and `/` too' -r -F
complete -c haul -n "__fish_haul_using_subcommand remote" -l read-only -d 'Copies may read only'
complete -c haul -n "__fish_haul_using_subcommand remote" -s h -l help -d 'Print help (see more with \'--help\')'
function __haul_is
    set -l words (commandline -opc)
    set -l command haul
    test haul = haul; and set command $words[2]
    contains -- $command $argv
end

function __haul_operands
    set -l word (commandline -ct)
    if string match -q '*://*' -- $word
        return
    else if string match -qr '^[^/:]+:' -- $word
        set -l parts (string split -m 1 : -- $word)
        set -l home (string match -r '^~[A-Za-z0-9._-]*/?' -- $parts[2])
        set -l path (string replace -r '^~[A-Za-z0-9._-]*/?' '' -- $parts[2] | string replace -a "'" "'\\''")
        for name in (command ssh -o BatchMode=yes -o ConnectTimeout=3 -- $parts[1] "ls -1dp -- $home'$path'* 2>/dev/null" </dev/null 2>/dev/null)
            echo $parts[1]:$name
        end
    else
        __fish_print_hostnames | string replace -r '$' ':'
    end
end
complete -c haul -n "__haul_is cp hcp" -a '(__haul_operands)'
complete -c haul -n "__haul_is perf hperf pipe rsh" -a '(__fish_print_hostnames)'
# An address is no file.
complete -c haul -n "__haul_is cp hcp; and string match -q '*://*' -- (commandline -ct)" -f
