function __NAME_is
    set -l words (commandline -opc)
    set -l command NAME
    test NAME = haul; and set command $words[2]
    contains -- $command $argv
end

function __NAME_operands
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
complete -c NAME -n "__NAME_is cp hcp" -a '(__NAME_operands)'
complete -c NAME -n "__NAME_is perf hperf pipe rsh" -a '(__fish_print_hostnames)'
# An address is no file.
complete -c NAME -n "__NAME_is cp hcp; and string match -q '*://*' -- (commandline -ct)" -f
