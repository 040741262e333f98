complete -c hcp -l exclude -d 'Leave out what matches PATTERN, a line of a .gitignore: \'*.o\', \'build/\' (only directories), \'/tree/tmp\' (from the top of the source tree on). What is in a directory that is left out is not looked at; of several patterns the last that matches decides' -r
complete -c hcp -l exclude-from -d 'Leave out what matches a pattern in FILE, one a line as in a .gitignore; --exclude comes after them' -r -F
complete -c hcp -l filter-from -d 'Leave out by the rules in FILE, `- PATTERN` or `+ PATTERN` a line, as a merge file of rsync\'s: the first that matches decides. Patterns given otherwise count more' -r -F
complete -c hcp -l include -d 'Copy what matches PATTERN although it is excluded, unless its directory is; comes after all that excludes' -r
complete -c hcp -l changed -d 'What becomes of a file that is written to while it is copied' -r -f -a "take\t'Copy it up to the length that it had at the start, as scp and rsync do, and say so, with the blocks that were rewritten after they had been read; the exit status is still 0. The default'
fail\t'Do not copy it; exit status 1'
retry\t'Copy it again from its start, once; if it changes again, do not copy it'"
complete -c hcp -l verify -d 'What is checked against the BLAKE3 hashes of what was read at the source' -r -f -a "arrival\t'What arrives, in memory, just before it is written; what the disk then keeps is not looked at. The default'
read-back\t'That, and what the target\'s disk gives back after the sync, before the file gets its name: past the page cache (O_DIRECT), or where its file system cannot do that, through the cache after it was told to drop the file; the summary says which. A file that differs is named and does not get its name; exit status 1'"
complete -c hcp -l files-from -d 'Copy only what FILE lists, a path below the one source a line (`-`: standard input). The source is a directory, and what is listed keeps its path in the target; of a directory all that is in it comes only with -r. Names that lead out of the source (`..`) are refused' -r -F
complete -c hcp -l max-delete -d 'Remove nothing if more than NUMBER names would go' -r
complete -c hcp -l manifest -d 'Write the checksums of all that the copy brings, or finds there already, to FILE, for `b3sum --check` or `sha256sum --check` in the target. The files are read here once more for it' -r -F
complete -c hcp -l manifest-hash -d 'What the checksums in --manifest are' -r -f -a "blake3\t'For `b3sum`. The default'
sha256\t'For `sha256sum`'"
complete -c hcp -l log-file -d 'Append what happens to FILE, a line each with its time: files, what was removed, problems, the end' -r -F
complete -c hcp -l retries -d 'Try again so often, after 1 s, 2 s, 4 s and so on up to a minute, where the connection was lost or did not come about; each time goes on where the last one was' -r
complete -c hcp -l compress -d 'Compress (zstd) blocks on their way that become smaller by it, while the link is what is waited for and no processor. A far side that is too old for this takes and gives them as they are' -r -f -a "auto\t'Where it gains'"
complete -c hcp -l on-success -d 'Run CMD by sh(1) once all is copied and verified as asked. HAUL_FILES, HAUL_BYTES, HAUL_TARGET and HAUL_STATUS are in its environment; where it fails, the exit status is 1. Not after a dry run' -r -f -a "(__fish_complete_command)"
complete -c hcp -l on-failure -d 'Run CMD by sh(1) where the copy ended otherwise: HAUL_STATUS is the exit status, HAUL_ERROR the first error that ended it' -r -f -a "(__fish_complete_command)"
complete -c hcp -l timeout -d 'rsync\'s word for --dead-after' -r
complete -c hcp -l reconnect -d 'Connect again to a daemon that was restarted, or is gone, until so long after it was last heard, and go on; 0: never. The default is the time after which silence ends a connection: what an outage does not end, a restart does not end either' -r
complete -c hcp -l list-interrupted -d 'Show the interrupted copies that are kept in a directory, here or on another host' -r -F
complete -c hcp -l discard -d 'Remove what interrupted copies have kept: all in DIR, here or on another host, or that of one copy, whose hidden directory it is' -r -F
complete -c hcp -l dead-after -d 'Give the connection up when nothing has come from the other side for so long; of both sides the shorter time counts' -r
complete -c hcp -s l -l limit -d 'Limit the rate; a bare number is in Kbit/s, as with scp. By the time of day: `08:00-18:00=100M,otherwise=1G`, local time, over midnight too; the first window that it is in counts, and `none` is no limit' -r
complete -c hcp -l mode -d 'How to share the path with others: fair, quickstart, modest, aggressive, reno, cubic, highspeed, scalable, bic, fast, udt, bbr, ledbat, lia, olia, balia or fixed:RATE. The default is fair' -r -f -a "fair\t''
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
complete -c hcp -l paths -d 'Send from so many ports to the far side\'s one, 1 to 8: for networks that send flows different ways. Those that share a bottleneck are one flow to others' -r
complete -c hcp -l via -d 'Leave by these interfaces or addresses, a path for each, and follow them as they come and go: eth0, 192.0.2.7, or all. eth1:backup carries data only while no other way works; wwan0:metered=BYTES too, and no more than that. Over UDP alone' -r
complete -c hcp -l udp-port -d 'UDP port or ports that the far side may use, where a firewall opens only those' -r
complete -c hcp -l trace -d 'Say at the end where the time went: login, start-up, bulk, last block and so on. To a file too: the parts where OUT ends in .json; what this side\'s connection did, with the parts, as a picture in .svg or .png; a log of it in .qlog' -r -F
complete -c hcp -l state -d 'Directory of the identity key and the known hosts, for haul:// targets' -r -F
complete -c hcp -s P -d 'Port of the ssh server' -r
complete -c hcp -s i -d 'File with the private key to log in with' -r -F
complete -c hcp -s J -d 'Log in by way of another host' -r
complete -c hcp -s F -d 'Configuration file for ssh' -r -F
complete -c hcp -s o -d 'Option in the form of ssh_config(5)' -r
complete -c hcp -s S -d 'Program to use in place of ssh' -r
complete -c hcp -l remote-haul -d 'haul\'s path on the far side, where its PATH does not have it' -r
complete -c hcp -l transport -d 'What carries the data: udp, tcp, ssh (its own connection), or auto: the first of these that passes' -r
complete -c hcp -l relay -d '`haul serve --relay` by which the two sides meet where NATs let UDP in at neither, and which forwards what passes no other way' -r
complete -c hcp -l bootstrap -d 'Where the far side has no haul of this version, send it one over ssh: into ~/.cache/haul there to stay, or to be gone at once with `once`' -r -f -a "keep\t'Until somebody removes it'
once\t'It is removed before it has done anything'"
complete -c hcp -l bootstrap-from -d 'The static haul to send, or a directory with one for each kind of machine' -r -F
complete -c hcp -s c -d 'Ciphers of the login (ssh\'s -c); what encrypts the data is not chosen' -r
complete -c hcp -s r -l recursive -d 'Copy directories with everything in them; symbolic links are copied as links'
complete -c hcp -s p -l preserve -d 'Keep modification times (to the nanosecond) and exact modes; owners too, where the target is written as root'
complete -c hcp -l update -d 'Keep files that are newer at the target, as cp and rsync -u do; one of the same time is copied if its size differs. Sets times, as -p does'
complete -c hcp -l skip-same -d 'Skip files that the target already has with the same size and modification time, whichever is newer otherwise; rsync\'s quick check. Sets times, as -p does'
complete -c hcp -l no-verify -d 'Hash nothing and check nothing'
complete -c hcp -l no-resume -d 'Start over instead of going on with what an interrupted copy left behind'
complete -c hcp -l size-only -d 'Skip files that the target already has with the same size, whatever their times'
complete -c hcp -l checksum -d 'Skip files that the target already has with the same content, whatever their times: both sides read and hash (BLAKE3) what has the same size'
complete -c hcp -l compare -d 'Copy nothing: print what differs at the target in content (or with --size-only in size), and exit with 1 if anything does'
complete -c hcp -s 0 -l from0 -d 'The paths in --files-from are divided by NUL, as find -print0 writes them'
complete -c hcp -l delete -d 'Remove in the copied directories of the target what their source does not have, once all has arrived. What is excluded stays; nothing is removed where the source could not be read whole. Try it with -n first'
complete -c hcp -s X -l xattrs -d 'Keep extended attributes, as rsync does: those of `user`, and where root copies to root those of `security` and `trusted`. Others at the target go, on files too that are skipped as the same. Who may not set one leaves it out and says so'
complete -c hcp -s A -l acls -d 'Keep ACLs (POSIX), and with them modes, which they are a part of; rsync\'s letter: to scp it means an agent, which a copy here has no use for. Users and groups are numbers, as with -p'
complete -c hcp -s L -l copy-links -d 'Copy what symbolic links below the sources lead to, not the links'
complete -c hcp -s n -l dry-run -d 'Print what would be done, on standard output, and do nothing: nothing is written on either side'
complete -c hcp -s q -l quiet -d 'Print nothing but errors'
complete -c hcp -s v -l verbose -d 'Say more; twice, and ssh says more too'
complete -c hcp -l json -d 'Print events as lines of JSON on standard output'
complete -c hcp -s 4 -d 'Use IPv4 only'
complete -c hcp -s 6 -d 'Use IPv6 only'
complete -c hcp -s B -d 'Ask for nothing: no password, no passphrase'
complete -c hcp -s C -d 'Compress the login (ssh\'s -C); data is sent as it is'
complete -c hcp -s O -s s -s T -d 'Nothing: protocols of scp, and a check of names that is always made'
complete -c hcp -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hcp -s V -l version -d 'Print version'
function __hcp_is
    set -l words (commandline -opc)
    set -l command hcp
    test hcp = haul; and set command $words[2]
    contains -- $command $argv
end

function __hcp_operands
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
complete -c hcp -n "__hcp_is cp hcp" -a '(__hcp_operands)'
complete -c hcp -n "__hcp_is perf hperf pipe rsh" -a '(__fish_print_hostnames)'
# An address is no file.
complete -c hcp -n "__hcp_is cp hcp; and string match -q '*://*' -- (commandline -ct)" -f
