/* tidemark pause: a sink gets nothing until it is resumed; the others go on. */
#include "app/commands.h"
#include "app/control/control_command.h"

int tide_command_pause(int argc, char **argv)
{
    return tide_control_pause_command(
        "pause",
        "Closes a sink of the pipeline of FILE, a configuration or a state directory; it gets "
        "nothing more until `tidemark resume`, also over restarts. The other sinks go on. "
        "Meanwhile the source keeps its log for it, and once its lane is full the others wait "
        "too.\v"
        "It works whether or not the pipeline runs, and is durable when the command ends. Exit "
        "status: 0 done, 2 there is no such sink, 3 it could not be done.",
        "is paused", argc, argv);
}
