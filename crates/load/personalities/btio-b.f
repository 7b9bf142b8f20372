# Checkpoint bursts as of NAS BTIO, class B: 4 clients write 1.7 GB in 200 checkpoints to one shared file.
# Li, section 3.2.2 and 3.2.3. Each client adds its share of a checkpoint, then all compute for as long as a checkpoint
# took there (0.2 s). After 200 checkpoints the file is begun anew.
set $clients=4
set $total=1700000000
set $share=2125000
set $compute=0.2

define fileset name=solution,path=$dir,size=$total,prealloc

define process name=conductor,instances=1
{
  thread name=conductor
  {
    flowop delay name=compute,value=$compute
    flowop sempost name=begin,target=begun,value=$clients
    flowop semblock name=ended,value=$clients
  }
}

define process name=client,instances=$clients
{
  thread name=client
  {
    flowop semblock name=begun,value=1
    flowop appendfile name=checkpoint,filesetname=solution,iosize=$share,workingset=$total
    flowop sempost name=end,target=ended,value=1
  }
}

run 60
