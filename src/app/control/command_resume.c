/* tidemark resume: a paused sink goes on where it was. */
#include "app/commands.h"
#include "app/control/control_command.h"

int tide_command_resume(int argc, char **argv)
{
    return tide_control_pause_command(
        "resume",
        "Opens a paused sink of the pipeline of FILE, a configuration or a state directory, again. "
        "It gets what it has missed, in order.\v"
        "It works whether or not the pipeline runs, and is durable when the command ends. Exit "
        "status: 0 done, 2 there is no such sink, 3 it could not be done.",
        "goes on", argc, argv);
}
