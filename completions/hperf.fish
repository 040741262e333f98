# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_hperf_global_optspecs
    string join \n s/server c/client= p/port= B/bind= t/time= n/bytes= O/omit= P/parallel= R/reverse bidir b/bitrate= l/length= mode= paths= via= scheduler= no-pacing tcp congestion= i/interval= J/json json-stream T/title= get-server-output trace= v/verbose 1/one-off max-clients= max-per-address= max-time= max-memory= max-bitrate= audit= key= ssh-port= jump= F= o= 4 6 S= remote-haul= transport= relay= udp-port= dead-after= state= h/help V/version
end

function __fish_hperf_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_hperf_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_hperf_using_subcommand
    set -l cmd (__fish_hperf_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c hperf -n "__fish_hperf_needs_command" -s c -l client -d 'Measure against a running server' -r -f -a "(__fish_print_hostnames)"
complete -c hperf -n "__fish_hperf_needs_command" -s p -l port -d 'Port of the server, with -s or -c: UDP, and TCP of the same number for --tcp [default: 7701]' -r
complete -c hperf -n "__fish_hperf_needs_command" -s B -l bind -d 'Local address to listen on or to connect from' -r
complete -c hperf -n "__fish_hperf_needs_command" -s t -l time -d 'Measure for so long' -r
complete -c hperf -n "__fish_hperf_needs_command" -s n -l bytes -d 'Send so many bytes instead' -r
complete -c hperf -n "__fish_hperf_needs_command" -s O -l omit -d 'Leave out the first seconds' -r
complete -c hperf -n "__fish_hperf_needs_command" -s P -l parallel -d 'Streams in parallel: of one connection with haul, connections with --tcp' -r
complete -c hperf -n "__fish_hperf_needs_command" -s b -l bitrate -d 'What each stream sends at most; without it, or with 0, as much as the path bears' -r
complete -c hperf -n "__fish_hperf_needs_command" -s l -l length -d 'Bytes handed to the transport at once' -r
complete -c hperf -n "__fish_hperf_needs_command" -l mode -d 'How to share the path with others: fair, quickstart, modest, aggressive, reno, cubic, highspeed, scalable, bic, fast, udt, bbr, ledbat, lia, olia, balia or fixed:RATE. The default is fair' -r -f -a "fair\t''
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
complete -c hperf -n "__fish_hperf_needs_command" -l paths -d 'Send from so many ports to the far side\'s one, 1 to 8: for networks that send flows different ways. Those that share a bottleneck are one flow to others' -r
complete -c hperf -n "__fish_hperf_needs_command" -l via -d 'Leave by these interfaces or addresses, a path for each, and follow them as they come and go: eth0, 192.0.2.7, or all. eth1:backup carries data only while no other way works; wwan0:metered=BYTES too, and no more than that. Over UDP alone' -r
complete -c hperf -n "__fish_hperf_needs_command" -l scheduler -d 'Which path is asked first, of those that carry data: completion (the default), shortest-rtt, round-robin or redundant' -r
complete -c hperf -n "__fish_hperf_needs_command" -l congestion -d 'The kernel\'s congestion control for --tcp, for instance cubic or bbr' -r
complete -c hperf -n "__fish_hperf_needs_command" -s i -l interval -d 'Seconds between reports, fractions too; a file name here is a key for ssh, as in haul-cp(1)' -r
complete -c hperf -n "__fish_hperf_needs_command" -s T -l title -d 'Put this before every line' -r
complete -c hperf -n "__fish_hperf_needs_command" -l trace -d 'Draw what this side sent, rate, delay and loss over time with the phases of the congestion control: to a file that ends in .svg or .png; in .qlog a log of it' -r -F
complete -c hperf -n "__fish_hperf_needs_command" -l max-clients -d 'Clients at once' -r
complete -c hperf -n "__fish_hperf_needs_command" -l max-per-address -d 'Clients at once from one address' -r
complete -c hperf -n "__fish_hperf_needs_command" -l max-time -d 'The longest measurement' -r
complete -c hperf -n "__fish_hperf_needs_command" -l max-memory -d 'Window for each client at most; memory is bounded by three of it [default: up to 1G, so that all clients together take a quarter of the machine\'s memory]' -r
complete -c hperf -n "__fish_hperf_needs_command" -l max-bitrate -d 'What is sent to each client at most' -r
complete -c hperf -n "__fish_hperf_needs_command" -l audit -d 'Write who came, with which key, from where, for what, how much and with what result: a line of JSON an event, appended to FILE, or with `journal` entries of systemd\'s journal' -r
complete -c hperf -n "__fish_hperf_needs_command" -l key -d 'Believe only the server with this key' -r
complete -c hperf -n "__fish_hperf_needs_command" -l ssh-port -d 'Port of the ssh server' -r
complete -c hperf -n "__fish_hperf_needs_command" -l jump -d 'Log in by way of another host (ssh\'s -J)' -r
complete -c hperf -n "__fish_hperf_needs_command" -s F -d 'Configuration file for ssh' -r -F
complete -c hperf -n "__fish_hperf_needs_command" -s o -d 'Option in the form of ssh_config(5)' -r
complete -c hperf -n "__fish_hperf_needs_command" -s S -d 'Program to use in place of ssh' -r
complete -c hperf -n "__fish_hperf_needs_command" -l remote-haul -d 'haul\'s path on the far side, where its PATH does not have it' -r
complete -c hperf -n "__fish_hperf_needs_command" -l transport -d 'What carries the data: udp, tcp, ssh (its own connection), or auto: the first of these that passes' -r
complete -c hperf -n "__fish_hperf_needs_command" -l relay -d '`haul serve --relay` by which the two sides meet where NATs let UDP in at neither, and which forwards what passes no other way' -r
complete -c hperf -n "__fish_hperf_needs_command" -l udp-port -d 'Port or ports that the far side may use' -r
complete -c hperf -n "__fish_hperf_needs_command" -l dead-after -d 'Give the connection up when nothing has come from the other side for so long; of both sides the shorter time counts' -r
complete -c hperf -n "__fish_hperf_needs_command" -l state -d 'Directory of the identity key and the known hosts, for haul:// hosts' -r -F
complete -c hperf -n "__fish_hperf_needs_command" -s s -l server -d 'Run a server, until it is interrupted'
complete -c hperf -n "__fish_hperf_needs_command" -s R -l reverse -d 'The server sends'
complete -c hperf -n "__fish_hperf_needs_command" -l bidir -d 'Both sides send at once'
complete -c hperf -n "__fish_hperf_needs_command" -l no-pacing -d 'Send whatever the window lets go at once, in bursts: to see what pacing is good for'
complete -c hperf -n "__fish_hperf_needs_command" -l tcp -d 'Measure the kernel\'s TCP instead'
complete -c hperf -n "__fish_hperf_needs_command" -s J -l json -d 'Print one JSON document, in iperf3\'s form'
complete -c hperf -n "__fish_hperf_needs_command" -l json-stream -d 'Print JSON as it comes, an event a line'
complete -c hperf -n "__fish_hperf_needs_command" -l get-server-output -d 'Show the server\'s own output too'
complete -c hperf -n "__fish_hperf_needs_command" -s v -l verbose -d 'Say more; twice, and ssh says more too'
complete -c hperf -n "__fish_hperf_needs_command" -s 1 -l one-off -d 'Serve one client, then end'
complete -c hperf -n "__fish_hperf_needs_command" -s 4 -d 'Use IPv4 only'
complete -c hperf -n "__fish_hperf_needs_command" -s 6 -d 'Use IPv6 only'
complete -c hperf -n "__fish_hperf_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hperf -n "__fish_hperf_needs_command" -s V -l version -d 'Print version'
complete -c hperf -n "__fish_hperf_needs_command" -a "mesh" -d 'Measure every ordered pair of a list of hosts, haul against TCP'
complete -c hperf -n "__fish_hperf_using_subcommand mesh" -s t -l time -d 'Length of each measurement' -r
complete -c hperf -n "__fish_hperf_using_subcommand mesh" -s O -l omit -d 'Leave out the first seconds of each' -r
complete -c hperf -n "__fish_hperf_using_subcommand mesh" -s i -l interval -d 'Seconds between two points of the plots; a file name here is a key for ssh, as in haul-cp(1)' -r
complete -c hperf -n "__fish_hperf_using_subcommand mesh" -s P -l parallel -d 'Streams in parallel' -r
complete -c hperf -n "__fish_hperf_using_subcommand mesh" -l mode -d 'How to share the path with others: fair, quickstart, modest, aggressive, reno, cubic, highspeed, scalable, bic, fast, udt, bbr, ledbat, lia, olia, balia or fixed:RATE. The default is fair' -r -f -a "fair\t''
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
complete -c hperf -n "__fish_hperf_using_subcommand mesh" -l tcp-mode -d 'Measure TCP with this law of `haul tcp` in haul\'s place: fair, quickstart, modest, aggressive or another one' -r
complete -c hperf -n "__fish_hperf_using_subcommand mesh" -l congestion -d 'TCP\'s congestion control' -r
complete -c hperf -n "__fish_hperf_using_subcommand mesh" -s p -l port -d 'Port of the servers, UDP and TCP; any free one without it' -r
complete -c hperf -n "__fish_hperf_using_subcommand mesh" -l at-once -d 'Pairs measured at once, of different hosts: for sites that share no link' -r
complete -c hperf -n "__fish_hperf_using_subcommand mesh" -l out -d 'Where the results go: PREFIX.csv, PREFIX.json, PREFIX.html; PREFIX-2 and so on where there is one' -r -F
complete -c hperf -n "__fish_hperf_using_subcommand mesh" -l ssh-port -d 'Port of the ssh servers' -r
complete -c hperf -n "__fish_hperf_using_subcommand mesh" -l jump -d 'Log in by way of another host (ssh\'s -J)' -r
complete -c hperf -n "__fish_hperf_using_subcommand mesh" -s F -d 'Configuration file for ssh' -r -F
complete -c hperf -n "__fish_hperf_using_subcommand mesh" -s o -d 'Option in the form of ssh_config(5)' -r
complete -c hperf -n "__fish_hperf_using_subcommand mesh" -s S -d 'Program to use in place of ssh' -r
complete -c hperf -n "__fish_hperf_using_subcommand mesh" -l remote-haul -d 'haul\'s path on the far side, where its PATH does not have it' -r
complete -c hperf -n "__fish_hperf_using_subcommand mesh" -l transport -d 'What carries the data: udp, tcp, ssh (its own connection), or auto: the first of these that passes' -r
complete -c hperf -n "__fish_hperf_using_subcommand mesh" -l relay -d '`haul serve --relay` by which the two sides meet where NATs let UDP in at neither, and which forwards what passes no other way' -r
complete -c hperf -n "__fish_hperf_using_subcommand mesh" -s 4 -d 'Use IPv4 only'
complete -c hperf -n "__fish_hperf_using_subcommand mesh" -s 6 -d 'Use IPv6 only'
complete -c hperf -n "__fish_hperf_using_subcommand mesh" -s h -l help -d 'Print help (see more with \'--help\')'
function __hperf_is
    set -l words (commandline -opc)
    set -l command hperf
    test hperf = haul; and set command $words[2]
    contains -- $command $argv
end

function __hperf_operands
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
complete -c hperf -n "__hperf_is cp hcp" -a '(__hperf_operands)'
complete -c hperf -n "__hperf_is perf hperf pipe rsh" -a '(__fish_print_hostnames)'
# An address is no file.
complete -c hperf -n "__hperf_is cp hcp; and string match -q '*://*' -- (commandline -ct)" -f
